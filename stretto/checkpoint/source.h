#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "stretto/base/option_names.h"
#include "stretto/checkpoint/transfer.h"
#include "stretto/checkpoint_format/manifest.h"
#include "stretto/tensor/state_source.h"

namespace stretto::checkpoint {

// A checkpoint of rank 0 as the source of a state. Every rank can read it while this object lives.
class Source : public StateSource {
 public:
  // `scratch`, `patience`: as ReadableCheckpoint's. `names`: as load()'s. Collective, also the destructor.
  // Throws IoError or DataError if a rank cannot read the checkpoint.
  Source(Group& group, const std::filesystem::path& checkpoint, const std::filesystem::path& scratch,
         std::chrono::milliseconds patience = SharedFolder::default_patience, OptionNames names = {});

  const checkpoint_format::Manifest& manifest() const { return readable_.manifest(); }

  std::set<std::string> tensors() const override;
  void fill(State& state) override;  // by load()

 private:
  Group& group_;
  ReadableCheckpoint readable_;
  OptionNames names_;
};

}  // namespace stretto::checkpoint
