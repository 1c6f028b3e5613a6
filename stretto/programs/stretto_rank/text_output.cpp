#include "stretto/programs/stretto_rank/text_output.h"

#include <csignal>
#include <iostream>
#include <tuple>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "stretto/base/strings.h"
#include "stretto/programs/arguments/standard_output.h"

namespace stretto::rank {
namespace {

volatile std::sig_atomic_t ends_line = 0;

extern "C" void report_and_end(int signal) {
  constexpr std::string_view message = "interrupted: texts that are not printed yet are lost\n";
  if (ends_line != 0) std::ignore = ::write(STDOUT_FILENO, "\n", 1);
  std::ignore = ::write(STDERR_FILENO, message.data(), message.size());
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

void TextOutput::begin(const std::string& prompt) {
  if (json_) return;
  shown_.push_back(prompt);
  if (shown_.size() == 1) print(prompt);
}

void TextOutput::add(int64_t prompt, std::string_view piece) {
  if (prompt == first_) return print(piece);
  shown_[static_cast<size_t>(prompt - first_)] += piece;
}

void TextOutput::end(const std::string& prompt, const std::vector<GeneratedText>& found, bool streamed) {
  if (json_) return print_json(prompt, found);
  for (size_t i = 0; i < found.size(); ++i) {
    if (i > 0) print(prompt);
    if (i > 0 || !streamed) print(found[i].text);
    print("\n");
  }
  shown_.pop_front();
  ++first_;
  if (!shown_.empty()) print(shown_.front());
}

void TextOutput::print_json(const std::string& prompt, const std::vector<GeneratedText>& found) const {
  for (const GeneratedText& one : found) {
    const nlohmann::ordered_json record = {
        {"text", prompt}, {"generated_text", one.text}, {"token_ids", one.token_ids}};
    std::cout << escape_controls(record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                                 ControlEscape::json)
              << "\n";
  }
  arguments::flush_standard_output();
}

void TextOutput::print(std::string_view text) {
  std::cout << escape_controls(text, ControlEscape::hexadecimal);
  arguments::flush_standard_output();
}

void end_output_on_signals(bool json) {
  ends_line = json ? 0 : 1;
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, report_and_end);
}

}  // namespace stretto::rank
