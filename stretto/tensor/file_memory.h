#pragma once

#include <filesystem>

#include "stretto/tensor/memory.h"

namespace stretto {

// A zeroed 1-D CPU tensor whose memory is a new file in `folder`. The file has no name and disappears with
// the tensor. The kernel keeps its pages in the page cache, writes them back to the file and evicts them
// under memory pressure. The file is allocated in full, so that a full disk is reported by this call, which
// throws IoError.
Tensor file_memory(const std::filesystem::path& folder, int64_t elements, at::ScalarType dtype);

// file_memory as an allocator, for the CPU only.
Allocator file_allocator(const std::filesystem::path& folder);

// Starts to read the whole pages of `part` that are not in the page cache, in the background. REQUIRES: as
// leave_to_file().
void read_ahead(const Tensor& part);

// Removes the whole pages of `part` from this process's resident memory. Their content is preserved: the
// kernel writes it back, and the pages are mapped again on access. REQUIRES: `part` belongs to a tensor of
// file_memory().
void leave_to_file(const Tensor& part);

}  // namespace stretto
