#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace stretto {

// How the frequencies of rotary positions are changed, as transformers names it: rope_type.
enum class RopeType {
  unchanged,  // "default" (Su et al. 2021)
  linear,     // all divided by a factor (Chen et al. 2023)
  dynamic,    // the base grows with the sequence, beyond max_position_embeddings
  yarn,       // low frequencies are divided by a factor (Peng et al. 2023)
  longrope,   // each frequency is divided by its own factor (Ding et al. 2024)
  llama3,     // low frequencies are divided by a factor (Llama 3.1)
};

// The rotary positions of a model, of config.json's rope_parameters, or rope_theta and rope_scaling.
struct RopeParameters {
  RopeType type = RopeType::unchanged;
  double theta = 10000;
  double partial_rotary_factor = 1;  // the part of each head that is rotated
  int64_t max_position_embeddings = 0, original_max_position_embeddings = 0;
  double factor = 1;
  double attention_factor = 1;  // of cosines and sines
  double beta_fast = 32, beta_slow = 1;
  bool truncate = true;
  std::vector<double> short_factor = {}, long_factor = {};
  double low_freq_factor = 1, high_freq_factor = 1;

  // The number of columns of a head that are rotated.
  int64_t width(int64_t head_width) const;

  // Throws ConfigError with `source` and the key for unknown types, unknown or missing keys and values out of
  // range.
  static RopeParameters from_json(const nlohmann::json& config, const std::string& source,
                                  int64_t max_position_embeddings, int64_t head_width);

  // Writes them as all versions of transformers read them: rope_theta, partial_rotary_factor and
  // rope_scaling.
  void write(nlohmann::json& config) const;
};

}  // namespace stretto
