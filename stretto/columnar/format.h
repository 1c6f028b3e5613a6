#pragma once

#include <optional>
#include <string_view>

namespace stretto::columnar {

enum class Format { parquet, arrow_file, arrow_stream };

// The format that the first bytes of a file show; nullopt: no columnar one.
inline std::optional<Format> format_of(std::string_view bytes) {
  if (bytes.starts_with("PAR1")) return Format::parquet;
  if (bytes.starts_with("ARROW1")) return Format::arrow_file;
  if (bytes.starts_with("\xFF\xFF\xFF\xFF")) return Format::arrow_stream;
  return std::nullopt;
}

// For messages.
constexpr const char* name_of(Format format) {
  return format == Format::parquet ? "a Parquet file" : "an Arrow file";
}

}  // namespace stretto::columnar
