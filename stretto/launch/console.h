#pragma once

#include <array>
#include <string>
#include <string_view>

namespace stretto::launch {

// The launcher's own standard output (stream 0) and standard error (stream 1), shared by the ranks: rank 0's
// bytes go through as they are, live progress lines ("\r") included; lines of others come between rank 0's,
// never into one. On a terminal rank 0's unfinished line is cleared for that; elsewhere it is held back until
// it is finished.
class Console {
 public:
  // `shared`: lines of other ranks may come. Without them everything of rank 0 goes through at once.
  explicit Console(bool shared);

  void pass(int stream, std::string_view bytes);  // of rank 0
  void line(int stream, std::string_view line);   // of another rank, without its end
  void finish();                                  // writes what is held back

  // The reader of a stream has gone: nothing more is written to it.
  bool broken(int stream) const { return streams_[static_cast<size_t>(stream)].broken; }

 private:
  struct Stream {
    int fd;
    bool terminal;
    bool broken = false;
    bool inside_line = false;  // on a terminal: rank 0 has left the cursor behind some text
    std::string held = {};
  };
  static void write(Stream& stream, std::string_view bytes);

  bool shared_;
  std::array<Stream, 2> streams_;
};

}  // namespace stretto::launch
