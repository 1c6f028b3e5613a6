#include "stretto/corpus/reader_format.h"

#include <filesystem>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/corpus/csv.h"
#include "stretto/corpus/jsonl.h"
#include "stretto/corpus/tsv.h"

namespace stretto::corpus {
namespace {

std::string extension_of(const std::string& file) {
  return lower_case(std::filesystem::path(file).extension().string());
}

}  // namespace

void require_field_size(size_t bytes, const std::string& file, int64_t line) {
  if (bytes <= most_field_bytes) return;
  throw DataError(
      "{}:{}: {} MiB without a line end; a row may have at most {} MiB: write one sample per line", file,
      line, bytes >> 20, most_field_bytes >> 20);
}

bool is_json_lines(const std::string& file) {
  const std::string extension = extension_of(file);
  return extension == ".jsonl" || extension == ".json";
}

std::unique_ptr<FieldReader> reader_by_extension(std::string_view text, const std::string& file) {
  const std::string extension = extension_of(file);
  if (extension == ".tsv" || extension == ".txt") return std::make_unique<TsvReader>(text, file);
  if (extension == ".csv") return std::make_unique<CsvReader>(text, file);
  if (is_json_lines(file)) return std::make_unique<JsonlReader>(text, file);
  return nullptr;
}

}  // namespace stretto::corpus
