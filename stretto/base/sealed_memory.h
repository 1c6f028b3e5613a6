#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "stretto/base/fd.h"

namespace stretto {

// A memory file (memfd_create(2)) that holds `bytes` and is sealed: nobody, this process included, can change them any
// more. The descriptor has no close-on-exec flag, so that processes started by this one inherit it under the same number.
// `name` appears in /proc/PID/fd. Throws IoError.
Fd make_sealed_memory(const char* name, std::string_view bytes);

// What `fd` holds; nothing where it is no such file or not one of this user.
std::optional<std::string> read_sealed_memory(int fd);

}  // namespace stretto
