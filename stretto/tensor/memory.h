#pragma once

#include <functional>

#include "stretto/tensor/tensor.h"

namespace stretto {

// Where the arena's long-lived buffers come from: given a dtype, a number of elements and a device, a zeroed 1-D tensor.
// Allocators differ in what lies below: plain memory, huge pages, a segment shared with other ranks, pinned memory.
using Allocator = std::function<Tensor(int64_t elements, at::ScalarType dtype, at::Device device)>;

// Memory of the device's own allocator. On CPU: pages of its own, zeroed, with transparent huge pages asked for.
Allocator plain_memory();

// For a part of such a buffer of which most may never be written: takes no more memory than what is, page by page, in
// place of huge pages. REQUIRES: nothing in it has been written yet.
void use_small_pages(const Tensor& part);

}  // namespace stretto
