#pragma once

#include <thread>

#include "stretto/base/wake.h"

namespace stretto::launch {

// Sends this process SIGHUP (SIGTERM if SIGHUP is ignored) at the end of standard input, as if its terminal
// were closed. A launcher that another one has started uses it: the end of its standard input means that the
// other one, or the connection to it, is gone.
class StdinWatch {
 public:
  StdinWatch();
  StdinWatch(const StdinWatch&) = delete;
  StdinWatch& operator=(const StdinWatch&) = delete;
  ~StdinWatch();

 private:
  Wake wake_;
  std::thread thread_;
};

}  // namespace stretto::launch
