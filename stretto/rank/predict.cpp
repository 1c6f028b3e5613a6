#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "stretto/base/error.h"
#include "stretto/command/standard_output.h"
#include "stretto/hub/cache.h"
#include "stretto/rank/verbs.h"
#include "stretto/serve/pipeline.h"

namespace stretto::rank {
namespace {

// Escapes DEL and U+0080 to U+009F, which JSON output contains unescaped and terminals may interpret.
std::string escape_controls(const std::string& json) {
  std::string safe;
  for (size_t i = 0; i < json.size(); ++i) {
    const auto byte = static_cast<unsigned char>(json[i]);
    const auto next = static_cast<unsigned char>(i + 1 < json.size() ? json[i + 1] : 0);
    if (byte == 0x7f) {
      safe += "\\u007f";
    } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {
      safe += fmt::format("\\u00{:02x}", next);
      ++i;
    } else {
      safe += json[i];
    }
  }
  return safe;
}

void print(const std::vector<PipelineInput>& inputs, const Pipeline& pipeline, const std::string& output) {
  for (const auto& record : pipeline.predict(inputs, output))
    std::cout << escape_controls(record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
              << "\n";
  command::flush_standard_output();
}

// Reads the next line, without its newline; false at the end of the input. `number` counts lines from 1. Throws DataError
// for a line that is too long, such as that of /dev/zero.
bool next_line(std::istream& in, std::string& line, int64_t number) {
  constexpr size_t most_bytes = size_t{16} << 20;
  std::array<char, (size_t{64} << 10)> piece;
  line.clear();
  while (in.getline(piece.data(), piece.size()) || in.gcount() > 0) {
    const bool has_end = in.good();
    line.append(piece.data(), static_cast<size_t>(in.gcount()) - (has_end ? 1 : 0));
    if (has_end || in.eof()) return true;
    in.clear();  // the piece was too short for the line
    if (line.size() > most_bytes) {
      throw DataError("standard input:{}: a line of more than {} MiB; expected one text per line", number,
                      most_bytes >> 20);
    }
  }
  return !line.empty();
}

// For a model of text pairs, and for questions on contexts, the two texts are separated by a tab. `number` counts inputs from 1.
PipelineInput parse_input(const std::string& line, const Pipeline& pipeline, int64_t number,
                          const std::filesystem::path& model) {
  if (!pipeline.takes_pairs()) return {line};
  const size_t tab = line.find('\t');
  if (tab == std::string::npos) {
    throw DataError(
        "input {}: found one text, but {} was trained on pairs of texts (or questions and contexts); pass both, separated by a tab",
        number, model.string());
  }
  return {line.substr(0, tab), line.substr(tab + 1)};
}

at::ScalarType dtype_of(const std::string& precision) {
  return precision == "fp64" ? at::kDouble : precision == "bf16" ? at::kBFloat16 : at::kFloat;
}

}  // namespace

void predict(const command::PredictArguments& arguments) {
  const auto pipeline = load_pipeline(hub::resolve_model(arguments.model),
                                      {.dtype = dtype_of(arguments.precision),
                                       .allow_nonfinite = arguments.allow_nonfinite,
                                       .choose_products = true,
                                       .aggregation_strategy = arguments.aggregation_strategy,
                                       .top_k = arguments.top_k});
  std::vector<PipelineInput> batch;
  int64_t read = 0;
  const auto flush = [&] {
    if (!batch.empty()) print(batch, *pipeline, arguments.output);
    batch.clear();
  };
  const auto add = [&](const std::string& line) {
    batch.push_back(parse_input(line, *pipeline, ++read, arguments.model));
    if (std::ssize(batch) == arguments.batch_size) flush();
  };
  for (const std::string& text : arguments.texts) add(text);
  if (arguments.texts.empty()) {
    for (std::string line; next_line(std::cin, line, read + 1);) add(line);
    if (std::ferror(stdin) != 0) throw IoError("standard input: cannot read: {}", std::strerror(errno));
  }
  flush();
}

}  // namespace stretto::rank
