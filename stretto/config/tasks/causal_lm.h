#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "stretto/settings/fields.h"
#include "stretto/settings/one_of.h"

namespace stretto {

struct Recipe;
struct TaskKind;  // config/task_kind.h

// causal_lm.blocks: how documents become blocks of data.max_length tokens.
enum class BlockKind { documents, stream, run_clm };
constexpr auto names_of(BlockKind) {
  return std::to_array<std::string_view>({"documents", "stream", "run-clm"});
}

// causal_lm.document: what a document of a plain text file is.
enum class TextDocument { file, line, blank_line };
constexpr auto names_of(TextDocument) {
  return std::to_array<std::string_view>({"file", "line", "blank-line"});
}

// The section causal_lm: language models that predict the next token.
struct CausalLmConfig {
  settings::OneOf<BlockKind> blocks = BlockKind::documents;
  settings::OneOf<TextDocument> document = TextDocument::file;
  bool keep_newlines = false;
  bool append_eos = true;
  std::optional<int64_t> stride = std::nullopt;

  void fields(settings::Fields& field);
  bool operator==(const CausalLmConfig&) const = default;
};

TaskKind causal_lm_kind();

// Throws ConfigError where causal_lm.stride exceeds `window`, in tokens: tokens between windows would be left
// out.
void check_stride(const Recipe& recipe, int64_t window);

}  // namespace stretto
