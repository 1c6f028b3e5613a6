#pragma once

#include <chrono>
#include <string>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/version.h>

// The exports of libstretto_mpi.so (stretto/comm/mpi), which is loaded when a group uses MPI, so that
// programs start without an MPI library.
namespace stretto::mpi_plugin {

inline constexpr const char* library = "libstretto_mpi.so";

// Makes the back end of `rank` in a group of `size` ranks that mpirun has started and that share `store`.
// Throws std::runtime_error.
using Make = void (*)(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                      std::chrono::milliseconds deadline, c10::intrusive_ptr<c10d::Backend>& made);
inline constexpr const char* make = "stretto_mpi_make";

// A description of the build, which must equal that of the program that loads the library.
using BuiltFor = const char* (*)();
inline constexpr const char* built_for = "stretto_mpi_built_for";
inline constexpr const char* this_build = STRETTO_VERSION " with libtorch " TORCH_VERSION;

}  // namespace stretto::mpi_plugin
