#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stretto::cli {

enum class LabelSide { gold, predicted };

// Reads the labels of a file, one per row, from the column `column` (a name, or a number from 1); if that is
// empty, from the usual column of the side ("label", "prediction", ...), or the only one. The extension
// selects the format: .csv; .jsonl, .json (JSON Lines); others are tab-separated. A column "index" must count
// the rows from 0. Throws ConfigError if no column can be chosen, DataError for rows without a label.
std::vector<std::string> read_label_file(const std::filesystem::path& path, LabelSide side,
                                         const std::string& column);

}  // namespace stretto::cli
