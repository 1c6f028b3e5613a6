#include "stretto/programs/arguments/failure.h"

#include <cstdlib>
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

// Where the message of an error of libtorch ends and the stack begins; npos: it is another error.
size_t end_of_torch_message(const std::string& text) { return text.find("\nException raised from "); }

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
    const std::string text = error.what();
    if (const size_t end = end_of_torch_message(text); end != std::string::npos) {
      if (std::getenv("TORCH_SHOW_CPP_STACKTRACES") != nullptr)
        return {fmt::format("libtorch: {}", text), internal_error};
      return {
          fmt::format("libtorch: {}; set TORCH_SHOW_CPP_STACKTRACES=1 to see the stack", text.substr(0, end)),
          internal_error};
    }
    return {fmt::format("unexpected exception: {}", text), internal_error};
  }
}

}  // namespace stretto::arguments
