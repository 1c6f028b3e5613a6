#pragma once

#include <optional>
#include <string_view>

#include "stretto/base/file_faults.h"

namespace stretto {

// Faults of whole programs, which preload the library of file_fault.cpp and read the variable
// STRETTO_FILE_FAULT (with_file_fault in shell.h):
//   EFFECT@CALL[+][:rank=R][:path=TEXT]      enospc@17   kill@12:rank=1   enospc@1+:path=checkpoints
// EFFECT: enospc, edquot, eio, erofs, eacces, eintr, short, torn, kill (before the call), kill-after. CALL
// counts from 1. "+" is Fault::sticky. With rank=R there is a fault only if `rank` (the variable RANK; unset
// in a launcher) is R. Throws std::invalid_argument.
std::optional<file_faults::Fault> parse_file_fault(std::string_view text, std::string_view rank);

}  // namespace stretto
