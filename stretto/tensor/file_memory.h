#pragma once

#include <filesystem>

#include "stretto/tensor/memory.h"

namespace stretto {

// A zeroed 1-D CPU tensor whose memory is a new file in `folder`. The file has no name and disappears with the tensor. The
// kernel keeps its pages in the page cache, writes them to the file and takes them from memory as other memory is needed. The
// file is allocated in full, so that a full disk is reported here: throws IoError.
Tensor file_memory(const std::filesystem::path& folder, int64_t elements, at::ScalarType dtype);

// The same as an allocator, of the CPU only.
Allocator file_allocator(const std::filesystem::path& folder);

// Removes the whole pages of such memory from this process's resident memory. Their content remains: they are mapped again
// when they are accessed. REQUIRES: it is a part of a tensor of file_memory().
void leave_to_file(const Tensor& part);

}  // namespace stretto
