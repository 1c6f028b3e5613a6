#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/heads.h"
#include "stretto/models/decoder.h"
#include "stretto/models/golden_support.h"
#include "stretto/models/registry.h"

// Functions that tests of decoders share.
namespace stretto {

inline const std::filesystem::path decoder_goldens =
    std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden";

inline nlohmann::json config_of(const std::string& folder) {
  return read_config_json(decoder_goldens / folder / "config.json");
}

inline std::shared_ptr<Decoder> make_decoder(const nlohmann::json& config,
                                             std::optional<double> dropout = {}) {
  return std::dynamic_pointer_cast<Decoder>(make_text_model(bundled_models(), heads::causal_language_model,
                                                            config, "config.json", {.dropout = dropout}));
}

inline std::shared_ptr<Decoder> load_decoder(const std::string& folder, std::optional<double> dropout = {}) {
  const auto model = make_decoder(config_of(folder), dropout);
  const WeightReport report = load_weights(*model, decoder_goldens / folder);
  EXPECT_THAT(report.missing, ::testing::IsEmpty());
  EXPECT_THAT(report.unexpected, ::testing::IsEmpty());
  return model;
}

inline NamedTensors golden_of(const std::string& folder) {
  return SafetensorsFile(decoder_goldens / folder / "golden.safetensors").load_all();
}

// Returns the error for the configuration in `folder` with a change; "" if it is accepted.
inline std::string refusal_of(const std::string& folder, const nlohmann::json& change) {
  nlohmann::json json = config_of(folder);
  json.update(change);
  try {
    make_decoder(json);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace stretto
