#pragma once

#include <cstdint>

// The exports of libstretto_arrow.so (stretto/columnar/arrow), which is loaded when a columnar file is read,
// so that programs start without Arrow. They are plain functions: Arrow may be built for another C++ library.
namespace stretto::arrow_plugin {

// A reader belongs to one thread.
struct Functions {
  const char* built_for;  // must equal this_build of the program
  void* (*make)();        // a reader of one file
  void (*destroy)(void* reader);
  // Opens a file, of whose columns only `column` is read; all of them are if it is null or if there is none
  // of this name. Returns false if it cannot be read: error() then tells why.
  bool (*open)(void* reader, const char* path, const char* column);
  // Sets `bytes` to the next rows, each a JSON object and a line end, valid until the next call. Returns
  // their size: 0 at the end, and -1 if they cannot be read.
  int64_t (*read)(void* reader, const char** bytes);
  double (*progress)(const void* reader);  // the share of the file that was read
  const char* (*error)(const void* reader);
};

using Get = const Functions* (*)();
inline constexpr const char* get = "stretto_arrow_functions";
inline constexpr const char* this_build = STRETTO_VERSION;

}  // namespace stretto::arrow_plugin
