#include "stretto/programs/stretto/split_lines.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/columnar/format.h"
#include "stretto/token_corpus/byte_stream.h"

namespace stretto::cli {

void write_if_changed(const std::filesystem::path& path, std::string_view content) {
  if (std::filesystem::exists(path) && MappedFile(path).text() == content) return;
  write_file_atomic(path, content);
}

static void require_text(const std::filesystem::path& file) {
  try {
    token_corpus::require_text(file);
  } catch (const DataError& error) {
    throw ConfigError("--train_file {}", error.what());
  }
}

void split_lines(const compat::ScriptPlan& plan) {
  if (plan.split_file.empty()) return;
  if (std::filesystem::weakly_canonical(plan.split_file).parent_path() ==
      std::filesystem::weakly_canonical(plan.split_folder)) {
    throw ConfigError(
        "--train_file {}: its parts for training and validation would be written there; pass another --output_dir",
        plan.split_file.string());
  }
  if (!std::filesystem::is_regular_file(plan.split_file))
    throw ConfigError("--train_file {}: there is no such file", plan.split_file.string());
  const MappedFile file(plan.split_file);
  const std::string_view text = file.text();
  if (text.starts_with("\x1f\x8b") || text.starts_with("\x28\xb5\x2f\xfd")) {
    throw ConfigError(
        "--train_file {}: lines of a compressed file are not split; pass --validation_file, or decompress it",
        plan.split_file.string());
  }
  if (const auto format = columnar::format_of(text)) {
    throw ConfigError("--train_file {}: rows of {} are not split; pass --validation_file",
                      plan.split_file.string(), name_of(*format));
  }
  require_text(plan.split_file);
  const auto breaks = std::ranges::count(text, '\n');
  const auto lines = breaks + (!text.empty() && text.back() != '\n');
  const auto first =
      static_cast<int64_t>(std::nearbyint(static_cast<double>(lines) * plan.split_percentage / 100));
  if (first < 1 || first >= lines) {
    throw ConfigError(
        "--train_file {}: {} lines cannot be split into {} % for validation and the rest; pass --validation_file",
        plan.split_file.string(), lines, plan.split_percentage);
  }
  size_t end = 0;
  for (int64_t line = 0; line < first; ++line) end = text.find('\n', end) + 1;
  make_folders(plan.split_folder);
  const auto parts = parts_of_split_file(plan);
  write_if_changed(parts[0], text.substr(0, end));
  write_if_changed(parts[1], text.substr(end));
}

std::vector<std::filesystem::path> parts_of_split_file(const compat::ScriptPlan& plan) {
  if (plan.split_file.empty()) return {};
  const std::string extension = plan.split_file.extension().string();
  return {plan.split_folder / ("validation" + extension), plan.split_folder / ("train" + extension)};
}

}  // namespace stretto::cli
