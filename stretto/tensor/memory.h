#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto {

// Memory of the device's default allocator. On CPU: zeroed private pages with transparent huge pages enabled.
Allocator plain_memory();

// The whole pages in a tensor's memory; none on other devices than the CPU.
struct Pages {
  char* begin = nullptr;
  size_t bytes = 0;
};
Pages whole_pages(const Tensor& part);

// Disables huge pages for a part of such a buffer that is written sparsely, so that only the written pages use memory.
// REQUIRES: nothing in it has been written yet.
void use_small_pages(const Tensor& part);

// Sets a part of such a buffer to zeros and gives its whole pages back to the system until they are written again. On
// other devices than the CPU it only sets zeros.
void release_pages(const Tensor& part);

}  // namespace stretto
