#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/generate/options.h"

namespace stretto::rank {

// Prints prompts and their continuations in the order of the prompts: as lines of JSON, or as text, where the
// tokens of the first unfinished prompt are printed as they arrive. Each call flushes standard output, and
// throws IoError if it cannot be written.
class TextOutput {
 public:
  explicit TextOutput(bool json) : json_(json) {}

  void begin(const std::string& prompt);
  void add(int64_t prompt, std::string_view piece);
  // The first prompt that has begun has ended. `streamed`: its first text was added piece by piece.
  void end(const std::string& prompt, const std::vector<GeneratedText>& found, bool streamed);

 private:
  void print_json(const std::string& prompt, const std::vector<GeneratedText>& found) const;
  static void print(std::string_view text);

  bool json_;
  std::deque<std::string> shown_;  // of prompts that have not ended: the text so far
  int64_t first_ = 0;              // the prompt whose text is shown_.front(), which was printed
};

// From now on, SIGINT and SIGTERM end the process with a message; what was printed stays. `json`: nothing but
// whole lines is printed.
void end_output_on_signals(bool json);

}  // namespace stretto::rank
