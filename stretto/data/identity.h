#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "stretto/data/dataset.h"

namespace stretto::data {

// What a checkpoint says about data: the number of samples, and hashes of their lengths and contents.
nlohmann::json identify(const Dataset& dataset);

// How `dataset` differs from the one whose identify() a checkpoint has: "data.train holds 21 samples here and 20 in
// the run to resume", with `name` at its beginning; "" if it is the same as far as the checkpoint says.
std::string difference(const std::string& name, const nlohmann::json& saved, const Dataset& dataset);

}  // namespace stretto::data
