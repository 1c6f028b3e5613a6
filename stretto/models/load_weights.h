#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "stretto/models/text_model.h"

namespace stretto {

// How an architecture's weight files name its encoder.
struct EncoderNames {
  std::string prefix;              // "bert."
  std::vector<std::string> parts;  // what names begin with in files of the encoder alone: "embeddings."
  std::function<std::string(std::string)> renamed = {};      // the current name of a weight of an older file
  std::function<bool(const std::string&)> is_leftover = {};  // belongs to another head: not unexpected
};

// Loads the weights of a Hugging Face folder into an encoder with a head. Weights that the folder lacks are not changed but
// reported. The head of a folder whose config.json names another one is left out, as heads share names.
WeightReport load_encoder_weights(const TextModel& model, const std::string& head,
                                  const std::filesystem::path& folder, const EncoderNames& names);

}  // namespace stretto
