#pragma once

#include <string>
#include <vector>

#include "tests/train/workspace.h"
#include <gtest/gtest.h>

#include "stretto/checkpoint_format/folder.h"

namespace stretto {

// A fixture that compares the results of runs, in a Workspace of programs or of rank threads.
template <class Runs>
class RunStates : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return workspace_.path(name); }
  std::string checkpoint(const std::string& run, int64_t step) const {
    return checkpoint_format::checkpoint_path(path(run + "/checkpoints"), step);
  }
  int64_t newest(const std::string& run) const {
    const auto checkpoints = checkpoint_format::list_checkpoints(path(run + "/checkpoints"));
    return checkpoints.empty() ? -1 : checkpoints.back().step;
  }

  // Everything that determines the rest of a run: every tensor's bytes (as checksums) and every scalar.
  nlohmann::json state_of(const std::string& run, int64_t step) const {
    const checkpoint_format::Manifest manifest = checkpoint_format::read_manifest(checkpoint(run, step));
    nlohmann::json state = manifest.scalars;
    for (const auto& [name, entry] : manifest.tensors) {
      for (const auto& piece : entry.pieces) state["tensors"][name].push_back(piece.checksum);
    }
    return state;
  }

  // The states as a short text, even if they are long.
  static void expect_same(const nlohmann::json& found, const nlohmann::json& expected) {
    EXPECT_EQ(nlohmann::json::diff(expected, found), nlohmann::json::array());
  }

  Runs workspace_;
};

}  // namespace stretto
