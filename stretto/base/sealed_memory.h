#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "stretto/base/fd.h"

namespace stretto {

// Creates a memory file (memfd_create(2)) with `bytes` and seals it, so that it cannot be modified any more.
// The descriptor has no close-on-exec flag: processes started by this one inherit it under the same number.
// `name` appears in /proc/PID/fd. Throws IoError.
Fd make_sealed_memory(const char* name, std::string_view bytes);

// The content of `fd`; nullopt if it is not such a file of this user.
std::optional<std::string> read_sealed_memory(int fd);

}  // namespace stretto
