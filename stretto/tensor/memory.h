#pragma once

#include "stretto/tensor/tensor.h"

namespace stretto {

// Memory of the device's default allocator. On the CPU it consists of zeroed private pages with transparent
// huge pages enabled.
Allocator plain_memory();

// The whole pages in a tensor's memory; none on devices other than the CPU.
struct Pages {
  char* begin = nullptr;
  size_t bytes = 0;
};
Pages whole_pages(const Tensor& part);

// Disables huge pages for a part of a buffer of plain_memory() that is written sparsely, so that only the
// written pages use memory. REQUIRES: the part has not been written yet.
void use_small_pages(const Tensor& part);

// Zeroes a part of a buffer of plain_memory() and returns its whole pages to the system until they are
// written again. On devices other than the CPU it only zeroes.
void release_pages(const Tensor& part);

}  // namespace stretto
