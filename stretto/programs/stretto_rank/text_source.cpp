#include "stretto/programs/stretto_rank/text_source.h"

#include <fmt/format.h>

namespace stretto::rank {

TextSource::TextSource(const arguments::InputArguments& arguments, const OptionNames& names)
    : arguments_(arguments) {
  if (!arguments.texts.empty()) return;
  lines_ = std::make_unique<LineReader>(arguments.input);
  const std::string& format = arguments.input_format;
  format_ = format == "json"    ? serve::InputFormat::json
            : format == "jsonl" ? serve::InputFormat::jsonl
            : format == "text"  ? serve::InputFormat::text
                                : serve::format_of(arguments.input, names);
}

void TextSource::read(const InputParser& parser, const UseInput& use) const {
  if (lines_) return read_inputs(*lines_, format_, parser, use);
  for (size_t i = 0; i < arguments_.texts.size(); ++i) {
    const std::string place = fmt::format("--text {}", i + 1);
    use(parser.parse_line(arguments_.texts[i], place), place);
  }
}

}  // namespace stretto::rank
