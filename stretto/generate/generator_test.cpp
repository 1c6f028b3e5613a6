#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/generate/generation_support.h"
#include "stretto/generate/logit_rules.h"
#include "stretto/models/odd_decoder_fixture.h"

namespace stretto::generate {
namespace {

const std::vector<std::vector<int32_t>> prompts = {
    {5}, {1, 2, 3, 4, 5, 6, 7}, {9, 9}, {30, 2, 8}, {11, 4, 0, 1}};

// The generated tokens do not depend on which prompts are processed together.
TEST(Generator, TextsAreTheSameForAnyBatchSize) {
  for (const char* folder : {"gpt2/plain", "llama/grouped", "llama/mistral", "llama/qwen3"}) {
    const auto model = load_generating(folder);
    for (GenerationOptions options :
         {GenerationOptions{.eos_token_id = {3, 17}},
          GenerationOptions{.eos_token_id = {3, 17}, .num_beams = 3},
          GenerationOptions{.eos_token_id = {3},
          .do_sample = true,
          .temperature = 1.5,
          .seed = 5,
          .num_return_sequences = 2},
          GenerationOptions{.eos_token_id = {3, 17}, .num_beams = 3, .do_sample = true, .seed = 6}}) {
      options.max_new_tokens = 14;
      const auto alone = generated(*model, options, prompts, 1);
      ASSERT_EQ(alone.size(), prompts.size());
      for (const int64_t batch_size : {2, 3, 5, 8})
        EXPECT_EQ(generated(*model, options, prompts, batch_size), alone) << folder << " " << batch_size;
    }
  }
}

TEST(Generator, TokensArriveAsTheyAreGenerated) {
  const auto model = load_generating("gpt2/plain");
  std::map<int64_t, std::vector<int32_t>> seen;
  SearchEvents events;
  events.on_token = [&](int64_t prompt, int64_t sequence, int32_t token) {
    EXPECT_EQ(sequence, 0);
    seen[prompt].push_back(token);
  };
  const auto all = generated(*model, {.max_new_tokens = 5}, prompts, 2, events);
  ASSERT_EQ(seen.size(), prompts.size());
  for (const auto& [prompt, tokens] : seen) EXPECT_EQ(all[static_cast<size_t>(prompt)][0], tokens);
}

// In each kind of search, a sequence ends when the observer returns true.
TEST(Generator, AnObserverEndsSequences) {
  const auto model = load_generating("llama/plain");
  SearchEvents events;
  events.is_end = [](int64_t, const std::vector<int32_t>& tokens) { return tokens.size() == 3; };
  for (const int64_t beams : {1, 3}) {
    const GenerationOptions options = {.max_new_tokens = 9, .num_beams = beams};
    for (const NewTokens& found : generated(*model, options, prompts, 2, events))
      EXPECT_EQ(found.at(0).size(), 3) << beams;
  }
}

// Generation ends at the last position of the model.
TEST(Generator, TheNumberOfPositionsIsTheLimit) {
  const auto model = load_generating("gpt2/plain");  // it has 24 positions
  for (const int64_t beams : {1, 2}) {
    const GenerationOptions options = {.num_beams = beams};
    EXPECT_EQ(generated(*model, options, {{1, 2, 3, 4}}).at(0).at(0).size(), 20);
    EXPECT_EQ(generated(*model, options, {std::vector<int32_t>(23, 1)}).at(0).at(0).size(), 1);
  }
  EXPECT_EQ(generated(*model, {.max_length = 10}, {{1, 2, 3, 4}}).at(0).at(0).size(), 6);
}

// A family that stretto does not have generates without any code for it: greedy tokens are those of whole
// forward passes without a cache.
TEST(Generator, AnAddedFamilyGenerates) {
  const auto model = make_odd_decoder();
  std::vector<int64_t> text = {1, 2, 3};
  std::vector<int32_t> expected;
  const at::NoGradGuard no_grad;
  for (int64_t i = 0; i < 15; ++i) {
    const auto length = std::ssize(text);
    Batch batch;
    batch.count = 1;
    batch.tensors = {{"input_ids", at::tensor(text)},
                     {"position_ids", at::arange(length)},
                     {"samples", at::zeros({length}, at::kLong)},
                     {"cu_seqlens", at::tensor(std::vector<int64_t>{0, length})}};
    const Tensor last = model->forward(batch, {}).slice(0, length - 1);
    text.push_back(model->capabilities().causal_decoder->logits(last).argmax().item<int64_t>());
    expected.push_back(static_cast<int32_t>(text.back()));
  }
  EXPECT_GT(std::set(expected.begin(), expected.end()).size(), 2) << "the tokens vary";
  EXPECT_EQ(generated(*model, {.max_new_tokens = 15}, {{1, 2, 3}}).at(0).at(0), expected);
  EXPECT_EQ(generated(*model, {.max_new_tokens = 15, .num_beams = 3}, {{1, 2, 3}}).at(0).at(0).size(), 15);
}

// A model that records what passes through it.
class RecordingModel : public TextModel, public CausalDecoder {
 public:
  explicit RecordingModel(std::shared_ptr<TextModel> model) : model_(std::move(model)) {}

  Tensor forward(const Batch& batch, const nn::Context& context) const override {
    tokens_per_pass.push_back(batch.at("input_ids").numel());
    return model_->forward(batch, context);
  }
  Tensor logits(const Tensor& rows) const override {
    all_logits.push_back(model_->capabilities().causal_decoder->logits(rows));
    return all_logits.back();
  }
  Loss loss(const Tensor& hidden, const Tensor& labels, const nn::Context& context) const override {
    return model_->capabilities().causal_decoder->loss(hidden, labels, context);
  }
  nn::InitialValue initial_value(const nn::LayerParameter& parameter) const override {
    return model_->initial_value(parameter);
  }
  nlohmann::json config_json(const nlohmann::json& original) const override {
    return model_->config_json(original);
  }
  const std::vector<std::string>& labels() const override { return model_->labels(); }
  TextLimits limits() const override { return model_->limits(); }
  Capabilities capabilities() const override { return {.causal_decoder = this}; }

  mutable std::vector<int64_t> tokens_per_pass;
  mutable std::vector<Tensor> all_logits;

 private:
  std::shared_ptr<TextModel> model_;
};

int64_t sum(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

// Prompts that begin with the same 18 tokens, one that begins with the first 5 of them, and another one.
std::vector<std::vector<int32_t>> prompts_with_prefix() {
  std::vector<int32_t> prefix(18);
  std::iota(prefix.begin(), prefix.end(), 7);
  std::vector<std::vector<int32_t>> all;
  for (const std::vector<int32_t>& ending : {std::vector{1}, {2, 3}, {}, {4, 5}}) {
    all.push_back(prefix);
    all.back().insert(all.back().end(), ending.begin(), ending.end());
  }
  all.push_back({7, 8, 9, 10, 11, 38});
  all.push_back({39, 8});
  return all;
}

// What prompts have in common is read once. Logits and texts are those of prompts that are read alone.
TEST(Generator, CommonBeginningsAreReadOnce) {
  const auto shared = prompts_with_prefix();
  for (const char* folder : {"gpt2/plain", "llama/grouped", "llama/mistral", "llama/qwen3"}) {
    for (const GenerationOptions& options :
         {GenerationOptions{.max_new_tokens = 3}, GenerationOptions{.max_new_tokens = 3, .num_beams = 3}}) {
      RecordingModel alone(load_generating(folder)), together(load_generating(folder));
      std::vector<NewTokens> expected;
      for (const auto& prompt : shared) expected.push_back(generated(alone, options, {prompt})[0]);
      EXPECT_EQ(generated(together, options, shared), expected) << folder;
      const double largest = at::cat(alone.all_logits).abs().max().item<double>();
      const Tensor differences = (at::cat(alone.all_logits) - at::cat(together.all_logits)).abs();
      EXPECT_LT(differences.max().item<double>(), 1e-5 * largest) << folder;
      // 18 tokens of the second and fourth prompt, 17 of the third, of which the last token is read, and 5.
      EXPECT_EQ(sum(alone.tokens_per_pass) - sum(together.tokens_per_pass), 18 + 17 + 18 + 5) << folder;
      for (const int64_t batch_size : {2, 3, 6}) {
        RecordingModel several(load_generating(folder));
        EXPECT_EQ(generated(several, options, shared, batch_size), expected) << folder << " " << batch_size;
        EXPECT_EQ(sum(several.tokens_per_pass), sum(together.tokens_per_pass)) << folder << " " << batch_size;
      }
    }
  }
}

// Prompts are read in passes of a limited number of tokens.
TEST(Generator, LongPromptsAreReadInParts) {
  const auto all = prompts_with_prefix();
  for (const char* folder : {"gpt2/plain", "llama/mistral"}) {
    const auto expected = generated(*load_generating(folder), {.max_new_tokens = 3}, all);
    for (const int64_t batch_size : {1, 3}) {
      for (const int64_t most : {1, 4, 17}) {
        RecordingModel model(load_generating(folder));
        EXPECT_EQ(generated(model, {.max_new_tokens = 3}, all, batch_size, {}, most), expected) << folder;
        // a pass also reads a token of each text whose prompt was read
        EXPECT_LE(std::ranges::max(model.tokens_per_pass), most + batch_size - 1) << folder;
      }
    }
  }
}

// Where the states of all tokens depend on the length of the text, prompts beyond a length are read at once
// and alone, as transformers does.
TEST(Generator, UnsteadyPromptsAreReadAtOnce) {
  for (const auto& [folder, length] : {std::pair("llama/longrope", 10), std::pair("llama/dynamic", 14)}) {
    std::vector<int32_t> prompt(static_cast<size_t>(length));  // texts are steady up to 8 and 12 tokens
    std::iota(prompt.begin(), prompt.end(), 1);
    RecordingModel model(load_generating(folder));
    const auto expected = generated(model, {.max_new_tokens = 2}, {prompt});
    model.tokens_per_pass.clear();
    EXPECT_EQ(generated(model, {.max_new_tokens = 2}, {prompt, prompt}, 1, {}, 4),
              (std::vector{expected[0], expected[0]}));
    EXPECT_EQ(model.tokens_per_pass, (std::vector<int64_t>{length, 1, length, 1})) << folder;
  }
}

// Dynamic rotary positions have no end, so that texts may become longer than the model's 12 positions.
TEST(Generator, DynamicPositionsDoNotEndTexts) {
  const auto model = load_generating("llama/dynamic");
  EXPECT_EQ(generated(*model, {.max_new_tokens = 30}, {{1, 2, 3}}).at(0).at(0).size(), 30);
  EXPECT_EQ(generated(*model, {.max_length = 40}, {std::vector<int32_t>(20, 1)}).at(0).at(0).size(), 20);
  EXPECT_EQ(generated(*model, {}, {{1}}).at(0).at(0).size(), 256);
}

std::string refusal(const std::string& folder, const GenerationOptions& options,
                    const std::vector<int32_t>& prompt = {1}) {
  try {
    generated(*load_generating(folder), options, {prompt});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Generator, PromptsThatCannotBeContinuedAreRefused) {
  EXPECT_EQ(refusal("gpt2/plain", {.max_new_tokens = 1}), "");
  EXPECT_THAT(refusal("gpt2/plain", {}, {}), has_all("prompt is empty"));
  EXPECT_THAT(refusal("gpt2/plain", {}, {1, 40}), has_all("id 40", "vocabulary has 40"));
  EXPECT_THAT(refusal("gpt2/plain", {}, std::vector<int32_t>(24, 1)), has_all("24 tokens", "24 positions"));
  EXPECT_THAT(refusal("gpt2/plain", {.max_length = 3}, {1, 2, 3}),
              has_all("3 tokens", "max_length is 3", "max_new_tokens"));
}

TEST(Generator, OptionsOutOfRangeAreRefused) {
  const auto refused = [](const GenerationOptions& options) { return refusal("gpt2/plain", options); };
  EXPECT_THAT(refused({.num_beams = 41}), has_all("num_beams: found 41", "at most 40"));
  EXPECT_THAT(refused({.num_beams = 0}), has_all("num_beams: found 0", "at least 1"));
  EXPECT_THAT(refused({.do_sample = true, .temperature = 0}), has_all("temperature: found 0", "do_sample"));
  EXPECT_THAT(refused({.do_sample = true, .top_p = 0}), has_all("top_p: found 0", "above 0"));
  EXPECT_THAT(refused({.do_sample = true, .top_p = NAN}), has_all("top_p: found nan"));
  EXPECT_THAT(refused({.do_sample = true, .min_p = 2}), has_all("min_p: found 2"));
  EXPECT_THAT(refused({.do_sample = true, .top_k = -1}), has_all("top_k: found -1", "at least 0"));
  EXPECT_THAT(refused({.do_sample = true, .typical_p = 0}), has_all("typical_p: found 0", "above 0"));
  EXPECT_THAT(refused({.stop_strings = {"a", ""}}), has_all("stop_strings: a string is empty"));
  EXPECT_THAT(refused({.repetition_penalty = 0}), has_all("repetition_penalty: found 0"));
  EXPECT_THAT(refused({.length_penalty = INFINITY}), has_all("length_penalty: found inf"));
  EXPECT_THAT(refused({.max_new_tokens = 0}), has_all("max_new_tokens: found 0"));
  EXPECT_THAT(refused({.max_new_tokens = 2, .min_new_tokens = 3}),
              has_all("min_new_tokens 3 exceeds max_new_tokens 2"));
  EXPECT_THAT(refused({.num_return_sequences = 2}), has_all("num_return_sequences 2", "at most num_beams"));
  EXPECT_THAT(refused({.eos_token_id = {40}}), has_all("eos_token_id: found 40"));
  EXPECT_THAT(refused({.epsilon_cutoff = 1}), has_all("epsilon_cutoff: found 1", "below 1"));
  EXPECT_THAT(refused({.eta_cutoff = -0.1}), has_all("eta_cutoff: found -0.1"));
  EXPECT_THAT(refused({.suppress_tokens = {40}}), has_all("suppress_tokens: found 40"));
  EXPECT_THAT(refused({.begin_suppress_tokens = {-1}}), has_all("begin_suppress_tokens: found -1"));
  EXPECT_THAT(refused({.bad_words_ids = {{1, 40}}}), has_all("bad_words_ids: found 40"));
  EXPECT_THAT(refused({.bad_words_ids = {{1}, {}}}), has_all("bad_words_ids: a list is empty"));
}

TEST(Generator, EncodersAreRefused) {
  const auto model = make_text_model(bundled_models(), heads::token_classification,
                                     {{"model_type", "bert"},
                                      {"vocab_size", 10},
                                      {"hidden_size", 8},
                                      {"num_attention_heads", 2},
                                      {"intermediate_size", 8},
                                      {"num_hidden_layers", 1}},
                                     "config.json");
  EXPECT_THAT(message_of<ConfigError>([&] { generated(*model, {}, {{1}}); }),
              has_all("predicts next tokens"));
}

// The probabilities that the logits processors of transformers give, computed independently.
std::vector<double> probabilities(const GenerationOptions& options, const std::vector<float>& logits) {
  std::vector<double> counts(logits.size());
  const int64_t draws = 40000;
  for (int64_t i = 0; i < draws; ++i)
    ++counts[static_cast<size_t>(sample(options, logits, random_number(options.seed, i, 0, 3)))];
  for (double& count : counts) count /= static_cast<double>(draws);
  return counts;
}

// Pearson's chi-squared statistic. With 5 degrees of freedom it is below 25 with a probability of 0.9999.
double chi_squared(const std::vector<double>& found, const std::vector<double>& expected) {
  double sum = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    if (expected[i] == 0) {
      EXPECT_EQ(found[i], 0) << "token " << i << " has no probability";
      continue;
    }
    sum += 40000 * (found[i] - expected[i]) * (found[i] - expected[i]) / expected[i];
  }
  return sum;
}

std::vector<double> normalised(std::vector<double> weights) {
  double sum = 0;
  for (const double weight : weights) sum += weight;
  for (double& weight : weights) weight /= sum;
  return weights;
}

TEST(Sampling, TheMostProbableTokenIsTheFirstOfTheLargestLogits) {
  for (const int64_t size : {1, 5, 16, 33, 1000}) {
    const Tensor logits = at::randint(-20, 20, {size}, at::kFloat);
    logits[size / 2] = -std::numeric_limits<float>::infinity();
    const std::span<const float> row(logits.const_data_ptr<float>(), static_cast<size_t>(size));
    EXPECT_EQ(most_probable(row), std::ranges::max_element(row) - row.begin()) << size;
  }
}

TEST(Sampling, FrequenciesAreTheProbabilities) {
  const std::vector<double> p = {0.4, 0.05, 0.25, 0.1, 0.15, 0.05};
  std::vector<float> logits;
  for (const double one : p) logits.push_back(static_cast<float>(std::log(one)));
  const auto expect = [&](const GenerationOptions& options, const std::vector<double>& weights) {
    EXPECT_LT(chi_squared(probabilities(options, logits), normalised(weights)), 25);
  };
  expect({}, p);
  expect({.temperature = 2},
         {std::sqrt(0.4), std::sqrt(0.05), 0.5, std::sqrt(0.1), std::sqrt(0.15), std::sqrt(0.05)});
  expect({.top_k = 2}, {0.4, 0, 0.25, 0, 0, 0});
  expect({.top_p = 0.7}, {0.4, 0, 0.25, 0, 0.15, 0});
  expect({.top_p = 0.6}, {0.4, 0, 0.25, 0, 0, 0});
  expect({.top_p = 1e-9}, {1, 0, 0, 0, 0, 0});
  expect({.min_p = 0.3}, {0.4, 0, 0.25, 0, 0.15, 0});
  // The entropy is 1.53; the information of the tokens is 0.92, 3.0, 1.39, 2.3, 1.9 and 3.0.
  expect({.typical_p = 0.2}, {0, 0, 0.25, 0, 0, 0});
  expect({.typical_p = 0.3}, {0, 0, 0.25, 0, 0.15, 0});
  expect({.typical_p = 0.5}, {0.4, 0, 0.25, 0, 0.15, 0});
  expect({.typical_p = 0.95}, {0.4, 0.05, 0.25, 0.1, 0.15, 0.05});
  expect({.temperature = 0.5, .top_k = 4, .top_p = 0.9}, {0.16, 0, 0.0625, 0, 0.0225, 0});
}

// Two beams draw two of the tokens without replacement, and the more probable one is the best. A beam keeps a
// choice besides the end token, though top_k leaves one.
TEST(Sampling, BeamsDrawWithoutReplacement) {
  const std::vector<double> p = {0.4, 0.05, 0.25, 0.1, 0.14, 0.06};
  Tensor logits = at::empty({1, 6});
  for (int64_t i = 0; i < 6; ++i) logits[0][i] = std::log(p[static_cast<size_t>(i)]);
  const auto first_tokens = [&](GenerationOptions options) {
    options.max_new_tokens = 1;
    options.num_beams = 2;
    options.do_sample = true;
    const SearchEvents events;
    std::vector<double> counts(6);
    for (int64_t i = 0; i < 40000; ++i) {
      const auto search = make_search(options, events, {{1}, i, 1});
      search->step(logits.clone());
      ++counts[static_cast<size_t>(search->results().at(0).at(0))];
    }
    for (double& count : counts) count /= 40000;
    return counts;
  };
  std::vector<double> expected(6);
  for (size_t a = 0; a < 6; ++a)
    for (size_t b = 0; b < 6; ++b)
      if (a != b) expected[p[a] > p[b] ? a : b] += p[a] * p[b] / (1 - p[a]);
  EXPECT_LT(chi_squared(first_tokens({}), expected), 25);
  const std::vector<double> best = first_tokens({.eos_token_id = {5}, .top_k = 1});
  EXPECT_EQ(best[0], 1);  // of two choices, both are drawn
}

// Prompts, sequences and steps each have different random numbers.
TEST(Sampling, RandomNumbersAreKeyed) {
  std::set<double> numbers;
  for (const uint64_t seed : {1, 2})
    for (int64_t prompt = 0; prompt < 5; ++prompt)
      for (int64_t sequence = 0; sequence < 5; ++sequence)
        for (int64_t step = 0; step < 5; ++step) numbers.insert(random_number(seed, prompt, sequence, step));
  EXPECT_EQ(numbers.size(), 250);
  EXPECT_GE(*numbers.begin(), 0);
  EXPECT_LT(*numbers.rbegin(), 1);
}

}  // namespace
}  // namespace stretto::generate
