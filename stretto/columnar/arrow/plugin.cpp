#include <algorithm>
#include <exception>
#include <string>

#include "stretto/columnar/arrow/row_reader.h"
#include "stretto/columnar/arrow_plugin.h"

namespace stretto::columnar {
namespace {

struct Reader {
  RowReader rows;
  std::string lines, error;

  // Calls `use`, and keeps its error. Returns whether there was none.
  template <class Use>
  bool succeeds(const Use& use) {
    try {
      const arrow::Status status = use();
      if (!status.ok()) error = status.message();
      std::ranges::replace(error, '\n', ' ');
      return status.ok();
    } catch (const std::exception& exception) {  // of Parquet
      error = exception.what();
      return false;
    }
  }
};

Reader& reader_at(void* reader) { return *static_cast<Reader*>(reader); }
const Reader& reader_at(const void* reader) { return *static_cast<const Reader*>(reader); }

void* make() { return new Reader; }  // NOLINT(cppcoreguidelines-owning-memory)

void destroy(void* reader) { delete &reader_at(reader); }  // NOLINT(cppcoreguidelines-owning-memory)

bool open(void* at, const char* path, const char* column) {
  Reader& reader = reader_at(at);
  return reader.succeeds([&] { return reader.rows.open(path, column); });
}

int64_t read(void* at, const char** bytes) {
  Reader& reader = reader_at(at);
  if (!reader.succeeds([&] { return reader.rows.read(reader.lines); })) return -1;
  *bytes = reader.lines.data();
  return static_cast<int64_t>(reader.lines.size());
}

double progress(const void* reader) { return reader_at(reader).rows.progress(); }

const char* error(const void* reader) { return reader_at(reader).error.c_str(); }

}  // namespace
}  // namespace stretto::columnar

extern "C" __attribute__((visibility("default"))) const stretto::arrow_plugin::Functions*
stretto_arrow_functions() {
  using namespace stretto;  // NOLINT(google-build-using-namespace)
  static const arrow_plugin::Functions functions = {
      arrow_plugin::this_build, columnar::make,     columnar::destroy, columnar::open,
      columnar::read,           columnar::progress, columnar::error};
  return &functions;
}
