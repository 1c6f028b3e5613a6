#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "stretto/data/dataset.h"

namespace stretto::data {

// The identity of data in a checkpoint: the number of samples, and hashes of their contents and, unless the
// dataset consists of blocks, of their lengths.
nlohmann::json identify(const Dataset& dataset);

// Describes how `dataset` differs from the one whose identify() a checkpoint contains: "data.train holds 21
// samples here and 20 in the run to resume", beginning with `name`; "" if the checkpoint records no
// difference.
std::string difference(const std::string& name, const nlohmann::json& saved, const Dataset& dataset);

}  // namespace stretto::data
