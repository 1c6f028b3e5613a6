#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace stretto::launch {

// Cuts a stream of bytes into the lines a terminal would show in the end: what a carriage return overwrites
// is left out, so that a live progress line is one line, its last.
class Lines {
 public:
  using Take = std::function<void(std::string_view line)>;

  void feed(std::string_view bytes, const Take& take);
  void finish(const Take& take);  // the last line, if the stream ended without a newline

 private:
  void emit(const Take& take);

  std::string line_;
  bool returned_ = false;  // a carriage return came last: the next character but a newline overwrites
};

}  // namespace stretto::launch
