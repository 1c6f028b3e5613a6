#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/temp_folder.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/data/tagged_dataset.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/heads.h"
#include "stretto/model_config/sequence_tagger.h"
#include "stretto/models/golden_support.h"
#include "stretto/models/registry.h"
#include "stretto/nn/initial_values.h"
#include "stretto/tasks/kept_states.h"
#include "stretto/tensor/tensor_source.h"
#include "stretto/text/add_token.h"
#include "stretto/text/copy_tokenizer.h"

namespace stretto::tasks {
namespace {

const std::filesystem::path of_transformer =
    std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/sequence_tagger/transformer";

data::TaggedDataset dataset_in_context(const data::ContextOptions& context, const TempFolder& cache) {
  return {corpus::read_tagged(of_transformer / "context.conll"),
          data::LabelSet({"O"}),
          text::Tokenizer::load(of_transformer / "encoder"),
          {.max_length = 48, .whole_words = true, .context = context, .cache = cache.path()}};
}

Batch whole_batch(const data::Dataset& dataset) {
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < dataset.size(); ++i) samples.push_back(i);
  return dataset.pack(samples);
}

// Golden files of Flair's TransformerWordEmbeddings(use_context=N, respect_document_boundaries=...).
TEST(WordsInContext, EqualFlairs) {
  const TempFolder cache;
  const auto golden = SafetensorsFile(of_transformer / "context.safetensors").load_all();
  const auto encoder = of_transformer / "encoder";
  const auto model = make_text_model(bundled_models(), heads::hidden_states,
                                     read_config_json(encoder / "config.json"), "config.json");
  load_weights(*model, encoder);
  at::NoGradGuard no_grad;
  for (const auto& [name, wanted] : golden) {
    const size_t dot = name.find('.');
    const auto dataset = dataset_in_context(
        {.words = std::stoll(name.substr(dot + 1)), .within_document = name.substr(0, dot) == "document"},
        cache);
    const Batch batch = whole_batch(dataset);
    const Tensor states = model->forward(batch, {}).index({batch.at("words").ge(0)});
    EXPECT_LT(relative_difference(states, wanted), 1e-5) << name;
  }
  EXPECT_EQ(golden.size(), 6u);
}

// The same with Flair's token between a sentence and its context, whose vector is the mean of all others.
TEST(WordsInContext, EqualFlairsWithASeparator) {
  const TempFolder folder;
  const auto golden = SafetensorsFile(of_transformer / "separator.safetensors").load_all();
  const auto encoder = of_transformer / "encoder";
  text::copy_tokenizer(encoder, /*lowercase=*/true, folder.path());
  const int32_t separator = text::add_special_token(folder.path(), SequenceTaggerConfig::separator);
  nlohmann::json config = read_config_json(of_transformer / "tagger/config.json");
  config.update({{"fine_tune", false},
                 {"characters", ""},
                 {"word_dimensions", 0},
                 {"layers", "-1"},
                 {"subtoken_pooling", "first"},
                 {"context_separator", true},
                 {"transformer_path", encoder.string()}});
  config["transformer"]["vocab_size"] = separator + 1;
  const auto model = make_text_model(bundled_models(), heads::token_classification, config, "config.json");
  EXPECT_EQ(model->capabilities().word_reader->separator, "[FLERT]");
  auto values = open_weights(*model, folder.path()).values;
  nn::fill_parameters(*model, JoinedSources(std::move(values), initial_values(*model, 1)));
  at::NoGradGuard no_grad;
  for (const auto& [name, wanted] : golden) {
    const size_t dot = name.find('.');
    const data::TaggedDataset dataset(corpus::read_tagged(of_transformer / "context.conll"),
                                      data::LabelSet({"O"}), text::Tokenizer::load(folder.path()),
                                      {.max_length = 48,
                                       .whole_words = true,
                                       .context = {.words = std::stoll(name.substr(dot + 1)),
                                                   .within_document = name.substr(0, dot) == "document",
                                                   .separator = separator},
                                       .cache = folder.path()});
    const Tensor states = model->capabilities().frozen_states->compute(whole_batch(dataset), {});
    EXPECT_LT(relative_difference(states, wanted), 1e-5) << name;
  }
  EXPECT_EQ(golden.size(), 6u);
}

// A model whose frozen states are the numbers of a sequence's words, plus how often they were computed.
class CountingModel : public FrozenStates {
 public:
  explicit CountingModel(double offset = 0) : offset_(offset) {}
  int64_t width() const override { return 2; }
  Tensor compute(const Batch& batch, const nn::Context&) const override {
    ++computed;
    EXPECT_EQ(batch.count, 1);
    EXPECT_EQ(batch.at("cu_seqlens").numel(), 2);
    const Tensor words = batch.at("token_words");
    const int64_t count = words.max().item<int64_t>() + 1;
    return at::arange(2 * count, at::kFloat).view({count, 2}) + batch.sample_ids.front() * 100 + offset_;
  }

  mutable int computed = 0;

 private:
  double offset_;
};

TEST(KeptStates, AreComputedOnceAndEqualThoseWithoutStorage) {
  const TempFolder cache;
  const auto dataset = dataset_in_context({}, cache);
  comm::run_rank_threads(1, [&](Group& group) {
    const Mesh mesh(group, {.dp_replicate = group.size()});
    KeptStates none(StateStorage::none, dataset.words(), 2, at::kFloat, mesh, at::kCPU),
        kept(StateStorage::cpu, dataset.words(), 2, at::kFloat, mesh, at::kCPU),
        there(StateStorage::gpu, dataset.words(), 2, at::kFloat, mesh, at::kCPU);
    const CountingModel without, with, on_device;
    int64_t used = 0;
    const std::vector<std::vector<int64_t>> batches = {{3, 1}, {1, 2, 3}, {0, 4, 5, 6, 7}, {7, 0, 3}};
    for (const auto& samples : batches) {
      Batch a = dataset.pack(samples), b = a, c = a;
      none.add_to(a, without, {});
      kept.add_to(b, with, {});
      there.add_to(c, on_device, {});
      EXPECT_EQ(a.at("frozen_states").size(0), a.at("words").ge(0).sum().item<int64_t>());
      EXPECT_TRUE(at::equal(a.at("frozen_states"), b.at("frozen_states")));
      EXPECT_TRUE(at::equal(a.at("frozen_states"), c.at("frozen_states")));
      used += std::ssize(samples);
    }
    EXPECT_EQ(without.computed, used);
    EXPECT_EQ(with.computed, dataset.size());
    EXPECT_EQ(on_device.computed, dataset.size());
    EXPECT_EQ(none.bytes(), 0);
    EXPECT_EQ(kept.bytes(), 8 * whole_batch(dataset).at("words").ge(0).sum().item<int64_t>());
  });
}

// The other ranks of a host read states that one rank has computed.
TEST(KeptStates, AreSharedByTheRanksOfAHost) {
  const TempFolder cache;
  const auto dataset = dataset_in_context({}, cache);
  comm::run_rank_threads(2, [&](Group& group) {
    const Mesh mesh(group, {.dp_replicate = group.size()});
    KeptStates kept(StateStorage::cpu, dataset.words(), 2, at::kFloat, mesh, at::kCPU);
    const CountingModel model(0.25);
    Batch batch = whole_batch(dataset);
    if (group.rank() == 1) kept.add_to(batch, model, {});
    group.barrier();
    if (group.rank() == 0) kept.add_to(batch, model, {});
    EXPECT_EQ(model.computed, group.rank() == 1 ? dataset.size() : 0);
    EXPECT_EQ(batch.at("frozen_states")[0][0].item<float>(), 0.25);
  });
}

// A frozen transformer's states give the same results whether stored or computed, up to the rounding of
// matmuls of other sizes.
TEST(KeptStates, GiveATaggerEqualResults) {
  const TempFolder cache;
  const auto dataset = dataset_in_context({.words = 2}, cache);
  nlohmann::json config = read_config_json(of_transformer / "tagger/config.json");
  config.update({{"fine_tune", false}, {"characters", ""}, {"word_dimensions", 0}, {"use_crf", false}});
  const auto model = make_text_model(bundled_models(), heads::token_classification, config, "config.json");
  nn::fill_parameters(*model, *initial_values(*model, 1));
  const FrozenStates& states = *model->capabilities().frozen_states;
  at::NoGradGuard no_grad;
  comm::run_rank_threads(1, [&](Group& group) {
    const Mesh mesh(group, {.dp_replicate = group.size()});
    KeptStates kept(StateStorage::cpu, dataset.words(), states.width(), at::kFloat, mesh, at::kCPU);
    const Batch batch = whole_batch(dataset);
    Batch given = batch;
    kept.add_to(given, states, {});
    const Tensor wanted = model->forward(batch, {}), first = model->forward(given, {});
    EXPECT_LT(relative_difference(first, wanted), 1e-5);
    // A sample has the same scores in another batch.
    Batch one = dataset.pack(std::vector<int64_t>{5});
    kept.add_to(one, states, {});
    const int64_t begin = batch.at("cu_seqlens")[5].item<int64_t>();
    const Tensor rows = model->forward(one, {});
    EXPECT_LT(relative_difference(rows, first.slice(0, begin, begin + rows.size(0))), 1e-5);
  });
}

}  // namespace
}  // namespace stretto::tasks
