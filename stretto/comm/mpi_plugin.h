#pragma once

#include <chrono>
#include <string>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/version.h>

// What libstretto_mpi.so exports (stretto/comm/mpi). It is loaded when a group uses MPI, so that programs start without an MPI library.
namespace stretto::mpi_plugin {

inline constexpr const char* library = "libstretto_mpi.so";

// Makes the back end of `rank` in a group of `size` ranks, all of which MPI has started and which `store` is shared by. Throws
// std::runtime_error.
using Make = void (*)(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                      std::chrono::milliseconds deadline, c10::intrusive_ptr<c10d::Backend>& made);
inline constexpr const char* make = "stretto_mpi_make";

// What the library was built for; programs that differ must not load it.
using BuiltFor = const char* (*)();
inline constexpr const char* built_for = "stretto_mpi_built_for";
inline constexpr const char* this_build = STRETTO_VERSION " with libtorch " TORCH_VERSION;

}  // namespace stretto::mpi_plugin
