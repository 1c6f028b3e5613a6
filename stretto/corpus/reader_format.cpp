#include "stretto/corpus/reader_format.h"

#include "stretto/base/error.h"

namespace stretto::corpus {

void require_field_size(size_t bytes, const std::string& file, int64_t line) {
  if (bytes <= most_field_bytes) return;
  throw DataError(
      "{}:{}: {} MiB without a line end; a row may have at most {} MiB: write one sample per line", file,
      line, bytes >> 20, most_field_bytes >> 20);
}

}  // namespace stretto::corpus
