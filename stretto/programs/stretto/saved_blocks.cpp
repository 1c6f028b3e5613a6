#include "stretto/programs/stretto/saved_blocks.h"

#include <string>

#include "stretto/base/error.h"
#include "stretto/base/json.h"
#include "stretto/columnar/json_lines.h"
#include "stretto/columnar/saved_files.h"

namespace stretto::cli {

void require_block_length(const compat::SavedBlocks& blocks) {
  for (const std::filesystem::path& file : columnar::saved_files(blocks.path)) {
    columnar::JsonLines rows(file, columnar::Format::arrow_stream, "input_ids");
    const std::string_view part = rows.next();
    const std::string_view row = part.substr(0, part.find('\n'));
    if (row.empty()) continue;
    const nlohmann::json block = parse_json(row, file.string());
    const auto found = block.find("input_ids");
    if (found == block.end() || !found->is_array())
      throw ConfigError("{}: {} has no lists in a column input_ids", blocks.flag, file.string());
    if (static_cast<int64_t>(found->size()) == blocks.length) return;
    throw ConfigError("{}: its blocks have {} tokens, but --seq_len is {}; pass --seq_len {}", blocks.flag,
                      found->size(), blocks.length, found->size());
  }
}

}  // namespace stretto::cli
