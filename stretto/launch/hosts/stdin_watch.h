#pragma once

#include <thread>

#include "stretto/base/wake.h"

namespace stretto::launch {

// While it lives: when standard input ends, this process gets SIGHUP (SIGTERM where SIGHUP is ignored), as if its terminal were
// closed. For a launcher that another one has started: the end means that the other one, or the connection to it, is gone.
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
