#include "stretto/columnar/json_lines.h"

#include <dlfcn.h>

#include "stretto/base/error.h"
#include "stretto/columnar/arrow_plugin.h"

namespace stretto::columnar {
namespace {

// The advice for a file that cannot be read here.
[[noreturn]] void refuse(const std::filesystem::path& file, Format format, const std::string& reason) {
  const char* const as_text =
      format == Format::parquet
          ? "write it as JSON Lines (pandas: read_parquet(...).to_json(..., orient=\"records\", lines=True))"
          : "write it as JSON Lines (datasets: load_from_disk(...).to_json(...))";
  throw DataError(
      "{}: {}, which this build of stretto does not read ({}): build it with Arrow C++ (scripts/setup.sh arrow), or {}",
      file.string(), name_of(format), reason, as_text);
}

// The library stays loaded: Arrow's threads and memory pools outlive files.
const arrow_plugin::Functions& load(const char* name, const std::filesystem::path& file, Format format) {
  void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) refuse(file, format, ::dlerror());
  const auto get = reinterpret_cast<arrow_plugin::Get>(::dlsym(library, arrow_plugin::get));
  if (get == nullptr) refuse(file, format, fmt::format("{} has no {}", name, arrow_plugin::get));
  const arrow_plugin::Functions& functions = *get();
  if (std::string_view(functions.built_for) != arrow_plugin::this_build)
    refuse(file, format, fmt::format("{} is of stretto {}", name, functions.built_for));
  return functions;
}

}  // namespace

JsonLines::JsonLines(const std::filesystem::path& file, Format format, const std::string& column,
                     const char* library)
    : file_(file),
      format_(format),
      functions_(load(library, file, format)),
      reader_(functions_.make(), functions_.destroy) {
  if (!functions_.open(reader_.get(), file.c_str(), column.empty() ? nullptr : column.c_str())) fail();
}

std::string_view JsonLines::next() {
  const char* bytes = nullptr;
  const int64_t size = functions_.read(reader_.get(), &bytes);
  if (size < 0) fail();
  return {bytes, static_cast<size_t>(size)};
}

double JsonLines::progress() const { return functions_.progress(reader_.get()); }

void JsonLines::fail() const {
  throw DataError("{}: {} that Arrow cannot read: {}", file_.string(), name_of(format_),
                  functions_.error(reader_.get()));
}

}  // namespace stretto::columnar
