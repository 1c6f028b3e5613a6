#pragma once

#include <ostream>

namespace stretto {

// A mesh of a small run, and the settings that make it.
struct RunMesh {
  const char* name;
  int ranks;
  const char* settings;
};
inline void PrintTo(const RunMesh& mesh, std::ostream* out) { *out << mesh.name; }

// The meshes on which runs are killed and resumed, and between which they move.
inline constexpr RunMesh run_meshes[] = {
    {"Dp2", 2, ""},
    {"Tp2", 2, "training.mesh.tp=2"},
    {"Tp4", 4, "training.mesh.tp=4"},
    {"Tp2Dp2", 4, "training.mesh.tp=2 training.mesh.sequence_parallel=true"},
    {"Fsdp2", 2, "training.strategy=fsdp"},
    {"Tp2Fsdp2", 4, "training.mesh.tp=2 training.strategy=fsdp"},
    {"Dp3", 3, ""}};

}  // namespace stretto
