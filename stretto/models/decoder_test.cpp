#include "stretto/models/decoder_support.h"
#include "stretto/models/odd_decoder_fixture.h"

namespace stretto {
namespace {

class DecoderGolden : public ::testing::TestWithParam<std::tuple<const char*, nn::Kernels>> {};

void expect_golden(const std::string& folder, const std::string& precision, nn::Kernels kernels,
                   double tolerance) {
  const auto golden = golden_of(folder);
  if (!golden.contains(precision + ".logits")) return;
  const auto model = load_decoder(folder);
  model->to(precision == "fp64" ? at::kDouble : at::kFloat);
  const Batch batch = packed_batch(golden);
  const nn::Context context = {.kernels = kernels};
  const Tensor hidden = model->forward(batch, context);
  const Loss loss = model->loss(hidden, batch.at("labels"), context);
  EXPECT_EQ(loss.count, 37) << "of 41 tokens of 4 sequences";
  expect_golden_pass(*model, model->logits(hidden), loss.sum, golden, precision, tolerance);
}

TEST_P(DecoderGolden, LogitsLossAndEveryGradient) {
  const auto [folder, kernels] = GetParam();
  expect_golden(folder, "fp64", kernels, 1e-11);
  expect_golden(folder, "fp32", kernels, 1e-5);
}

// A folder is written and read back.
TEST_P(DecoderGolden, ConfigJsonIsReadAgain) {
  const auto [folder, kernels] = GetParam();
  const nlohmann::json json = config_of(folder);
  const auto model = make_decoder(json);
  const nlohmann::json written = model->config_json(json);
  EXPECT_EQ(written.at("architectures"), json.at("architectures"));
  EXPECT_EQ(make_decoder(written)->config_json({}), model->config_json({}));
}

// Each range of blocks continues from the result of the previous range.
TEST_P(DecoderGolden, RangesOfBlocksEqualTheWholeModel) {
  const auto [folder, kernels] = GetParam();
  const auto model = load_decoder(folder, 0.1);
  const Batch batch = packed_batch(golden_of(folder));
  const nn::Context context = {.training = true, .key = 3, .kernels = kernels};
  const Tensor whole = model->forward(batch, context);
  for (int64_t cut = 1; cut < model->blocks(); ++cut) {
    const nn::Carry carry = model->run({0, cut}, {}, batch, context);
    EXPECT_TRUE(at::equal(model->run({cut, model->blocks()}, carry, batch, context)[0], whole)) << cut;
  }
}

const char* const cases[] = {
    "gpt2/plain",     "gpt2/inverse", "gpt2/inner_odd", "gpt2/untied",   "llama/plain", "llama/grouped",
    "llama/biases",   "llama/tied",   "llama/linear",   "llama/dynamic", "llama/yarn",  "llama/yarn_scaled",
    "llama/longrope", "llama/llama3", "llama/partial",  "llama/mistral", "llama/qwen2", "llama/qwen3"};

INSTANTIATE_TEST_SUITE_P(Cases, DecoderGolden,
                         ::testing::Combine(::testing::ValuesIn(cases),
                                            ::testing::Values(nn::Kernels::fast, nn::Kernels::reference)));

TEST(Decoder, RecomputingActivationsDoesNotChangeResults) {
  const Batch batch = packed_batch(golden_of("gpt2/plain"));
  const auto run = [&](int64_t recompute_every) {
    const auto model = load_decoder("gpt2/plain", 0.2);
    const nn::Context context = {.training = true, .key = 7, .recompute_every = recompute_every};
    const Loss loss = model->loss(model->forward(batch, context), batch.at("labels"), context);
    loss.sum.backward();
    std::vector<Tensor> results = {loss.sum.detach()};
    for (const Tensor& parameter : model->parameters()) results.push_back(parameter.grad());
    return results;
  };
  const auto kept = run(0);
  for (const int64_t every : {1, 2}) {
    const auto recomputed = run(every);
    for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(at::equal(recomputed[i], kept[i])) << i;
  }
}

// Dropout in each of its places: of embeddings, attention weights, and the outputs of attention and MLP.
TEST(Decoder, DropoutOfASampleDoesNotDependOnItsBatchOrKernels) {
  const auto model = load_decoder("gpt2/plain", 0.2);
  model->to(at::kDouble);
  const Batch all = packed_batch(golden_of("gpt2/plain"));
  const nn::Context context = {.training = true, .key = 5};
  const Tensor together = model->forward(all, context);
  const int64_t begin = all.at("cu_seqlens")[1].item<int64_t>(),
                end = all.at("cu_seqlens")[2].item<int64_t>();
  Batch alone;
  for (const char* name : {"input_ids", "position_ids", "samples"})
    alone.tensors[name] = all.at(name).slice(0, begin, end);
  alone.tensors["cu_seqlens"] = at::tensor({int64_t{0}, end - begin});
  const Tensor wanted = together.slice(0, begin, end);
  EXPECT_LT(relative_difference(model->forward(alone, context), wanted), 1e-12);
  EXPECT_GT(relative_difference(model->forward(alone, {.training = true, .key = 6}), wanted), 1e-4);
  EXPECT_GT(relative_difference(model->forward(alone, {}), wanted), 1e-4);
  EXPECT_LT(
      relative_difference(
          model->forward(all, {.training = true, .key = 5, .kernels = nn::Kernels::reference}), together),
      1e-11);
}

// Each dropout site uses its own probability.
TEST(Decoder, EachDropoutProbabilityIsUsed) {
  const auto hidden = [&](const std::string& folder, const char* key) {
    nlohmann::json config = config_of(folder);
    if (key != nullptr) config[key] = 0.3;
    const auto model = make_decoder(config);
    load_weights(*model, decoder_goldens / folder);
    return model->forward(packed_batch(golden_of(folder)), {.training = true, .key = 1});
  };
  for (const auto& [folder, key] : {std::pair{"gpt2/plain", "resid_pdrop"},
                                    {"gpt2/plain", "embd_pdrop"},
                                    {"gpt2/plain", "attn_pdrop"},
                                    {"llama/plain", "attention_dropout"}})
    EXPECT_GT(relative_difference(hidden(folder, key), hidden(folder, nullptr)), 1e-3) << key;
}

// A table that is also the head's weight is not used by lookups alone.
TEST(Decoder, OnlyAnUntiedTableIsSparse) {
  const auto is_sparse = [](const char* folder, const char* table) {
    return std::dynamic_pointer_cast<nn::Embedding>(make_decoder(config_of(folder))->named_modules()[table])
        ->sparse;
  };
  EXPECT_FALSE(is_sparse("gpt2/plain", "transformer.wte"));
  EXPECT_TRUE(is_sparse("gpt2/untied", "transformer.wte"));
  EXPECT_FALSE(is_sparse("llama/tied", "model.embed_tokens"));
  EXPECT_TRUE(is_sparse("llama/plain", "model.embed_tokens"));
}

TEST(Decoder, AProgramAddsAFamilyByOneClass) {
  const auto model = make_odd_decoder();
  const CausalDecoder* const decoder = model->capabilities().causal_decoder;
  ASSERT_NE(decoder, nullptr);
  const Batch batch = packed_batch(golden_of("gpt2/plain"));
  const Tensor hidden = model->forward(batch, {});
  const Loss loss = decoder->loss(hidden, batch.at("labels"), {});
  loss.sum.backward();
  EXPECT_TRUE(at::allclose(loss.sum, nn::cross_entropy(decoder->logits(hidden), batch.at("labels")).sum));
  for (const auto& item : model->named_parameters())
    EXPECT_GT(item.value().grad().abs().max().item<double>(), 0) << item.key();
}

}  // namespace
}  // namespace stretto
