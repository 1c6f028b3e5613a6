#include "stretto/programs/arguments/failure.h"

#include <filesystem>
#include <new>
#include <system_error>

#include "stretto/base/error.h"
#include "stretto/launch/supervise.h"

namespace stretto::arguments {
namespace {

constexpr int internal_error = 70;  // EX_SOFTWARE of sysexits.h

// libtorch indicates lack of memory by the message only.
bool is_out_of_memory(const std::string& message) {
  return message.find("DefaultCPUAllocator") != std::string::npos ||
         message.find("CUDA out of memory") != std::string::npos;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

Failure describe_exception() {
  try {
    throw;
  } catch (const DataError& error) {
    return {error.what(), launch::usage_error};
  } catch (const Error& error) {
    return {error.what(), error.exit_code()};
  } catch (const std::filesystem::filesystem_error& error) {
    return {fmt::format("cannot access {}: {}", error.path1().string(), error.code().message())};
  } catch (const std::bad_alloc&) {
    return {"out of memory; lower the batch size, use fewer ranks, or give the job more memory"};
  } catch (const std::length_error&) {
    return {"out of memory: a size is larger than the address space; an input file may be damaged"};
  } catch (const std::system_error& error) {
    return {error.what()};
  } catch (const std::exception& error) {
    if (is_out_of_memory(error.what())) {
      return {fmt::format("out of memory: {}; lower the batch size or use fewer ranks",
                          first_line(error.what()))};
    }
    return {fmt::format("internal error: {}", error.what()), internal_error};
  }
}

}  // namespace stretto::arguments
