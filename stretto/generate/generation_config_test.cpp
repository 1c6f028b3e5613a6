#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/generate/options.h"

namespace stretto::generate {
namespace {

using ::testing::ElementsAre;

GenerationOptions parsed(const nlohmann::json& json) {
  return parse_generation_config(json, "generation_config.json");
}

TEST(GenerationConfig, OptionsAreRead) {
  const GenerationOptions options = parsed({{"max_new_tokens", 7},
                                            {"min_new_tokens", 2},
                                            {"do_sample", true},
                                            {"temperature", 0.6},
                                            {"top_k", 20},
                                            {"top_p", 0.9},
                                            {"min_p", 0.1},
                                            {"num_beams", 4},
                                            {"length_penalty", 2},
                                            {"early_stopping", "never"},
                                            {"repetition_penalty", 1.1},
                                            {"no_repeat_ngram_size", 3},
                                            {"num_return_sequences", 2},
                                            {"eos_token_id", {5, 6}},
                                            {"typical_p", 0.8},
                                            {"min_length", 6},
                                            {"epsilon_cutoff", 0.02},
                                            {"eta_cutoff", 0.03},
                                            {"suppress_tokens", {7, 8}},
                                            {"begin_suppress_tokens", {9}},
                                            {"bad_words_ids", {{1}, {2, 3}}},
                                            {"renormalize_logits", true},
                                            {"stop_strings", "."},
                                            {"max_length", 4096}});
  EXPECT_EQ(options.max_new_tokens, 7);
  EXPECT_EQ(options.min_new_tokens, 2);
  EXPECT_TRUE(options.do_sample);
  EXPECT_EQ(options.temperature, 0.6);
  EXPECT_EQ(options.top_k, 20);
  EXPECT_EQ(options.top_p, 0.9);
  EXPECT_EQ(options.min_p, 0.1);
  EXPECT_EQ(options.typical_p, 0.8);
  EXPECT_EQ(options.min_length, 6);
  EXPECT_EQ(options.epsilon_cutoff, 0.02);
  EXPECT_EQ(options.eta_cutoff, 0.03);
  EXPECT_THAT(options.suppress_tokens, ElementsAre(7, 8));
  EXPECT_THAT(options.begin_suppress_tokens, ElementsAre(9));
  EXPECT_THAT(options.bad_words_ids, ElementsAre(ElementsAre(1), ElementsAre(2, 3)));
  EXPECT_TRUE(options.renormalize_logits);
  EXPECT_THAT(options.stop_strings, ElementsAre("."));
  EXPECT_EQ(options.num_beams, 4);
  EXPECT_EQ(options.length_penalty, 2);
  EXPECT_EQ(options.early_stopping, EarlyStopping::never);
  EXPECT_EQ(options.repetition_penalty, 1.1);
  EXPECT_EQ(options.no_repeat_ngram_size, 3);
  EXPECT_EQ(options.num_return_sequences, 2);
  EXPECT_THAT(options.eos_token_id, ElementsAre(5, 6));
  EXPECT_EQ(max_new_tokens(options, 10, 100), 7);
  EXPECT_EQ(max_new_tokens(options, 98, 100), 2);
  EXPECT_EQ(parsed({{"early_stopping", true}}).early_stopping, EarlyStopping::yes);
}

TEST(GenerationConfig, SettingsThatChangeNothingAreSkipped) {
  const GenerationOptions options = parsed({{"transformers_version", "5.23.0"},
                                            {"use_cache", true},
                                            {"pad_token_id", 0},
                                            {"top_k", nullptr},
                                            {"remove_invalid_values", false},
                                            {"num_beam_groups", 1},
                                            {"sequence_bias", nullptr}});
  EXPECT_EQ(options.top_k, 50);
  EXPECT_EQ(max_new_tokens(options, 10, 10000), 256);
}

TEST(GenerationConfig, SettingsThatAreNotSupportedAreNamed) {
  const auto refusal = [](const nlohmann::json& json) -> std::string {
    try {
      parsed(json);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal({{"guidance_scale", 1.5}}),
              has_all("generation_config.json: guidance_scale 1.5", "not supported"));
  EXPECT_THAT(refusal({{"stop_strings", {"a", 1}}}),
              has_all("stop_strings: found [\"a\",1]", "list of texts"));
  EXPECT_THAT(refusal({{"forced_eos_token_id", 2}}), has_all("forced_eos_token_id 2 is not supported"));
  EXPECT_THAT(refusal({{"suppress_tokens", {1, -2}}}),
              has_all("suppress_tokens: found [1,-2]", "id of a token"));
  EXPECT_THAT(refusal({{"bad_words_ids", {1}}}), has_all("bad_words_ids: found [1]", "list of lists"));
  EXPECT_THAT(refusal({{"top_p", "0.9"}}), has_all("top_p: found \"0.9\"", "a number"));
  EXPECT_THAT(refusal({{"top_k", 1.5}}), has_all("top_k: found 1.5", "whole number"));
  EXPECT_THAT(refusal({{"early_stopping", "ever"}}), has_all("early_stopping: found \"ever\"", "never"));
  EXPECT_THAT(refusal({{"eos_token_id", -1}}), has_all("eos_token_id: found -1"));
  EXPECT_THAT(refusal({1}), has_all("generation_config.json: expected an object"));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(refusal({{"creativity", 11}}), "");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              has_all("generation_config.json: creativity", "ignored"));
}

TEST(GenerationConfig, EndTokensComeFromTheFolder) {
  const TempFolder folder;
  write_file_atomic(folder.path() / "config.json", R"({"eos_token_id": 3})");
  EXPECT_THAT(read_generation_config(folder.path()).eos_token_id, ElementsAre(3));
  write_file_atomic(folder.path() / "generation_config.json", R"({"eos_token_id": [4, 5]})");
  EXPECT_THAT(read_generation_config(folder.path()).eos_token_id, ElementsAre(4, 5));
}

}  // namespace
}  // namespace stretto::generate
