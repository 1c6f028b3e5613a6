#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace stretto::launch {

// Splits a stream of bytes into the lines that a terminal would finally show: text that a carriage return
// overwrites is dropped, so that only the last state of a live progress line remains.
class Lines {
 public:
  using Take = std::function<void(std::string_view line)>;

  void feed(std::string_view bytes, const Take& take);
  void finish(const Take& take);  // passes on the last line if the stream ended without a newline

 private:
  void emit(const Take& take);

  std::string line_;
  // The last byte was a carriage return: the next one, unless it is a newline, overwrites the line.
  bool returned_ = false;
};

}  // namespace stretto::launch
