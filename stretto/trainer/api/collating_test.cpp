#include <cmath>

#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include "stretto/data/collators.h"
#include "stretto/nn/functional.h"
#include "stretto/tensor/safetensors.h"
#include "stretto/trainer/run/loop_fixture.h"

// The examples with collators in docs/guide/module.md.
namespace stretto {
namespace {

// Sentences of different lengths between [CLS] (101) and [SEP] (102).
class Sentences : public data::SampleDataset {
 public:
  explicit Sentences(int64_t count) : SampleDataset(lengths(count)) {}
  data::Sample sample(int64_t index) const override {
    Tensor ids = at::arange(length(index), at::kLong) * 7 % 40 + 200 + index;
    ids[0] = 101;
    ids[-1] = 102;
    return {{"input_ids", ids}, {"labels", ids.slice(0, 0, 3 + index % 2)}};
  }

 private:
  static int64_t length(int64_t index) { return 6 + index * 5 % 11; }
  static std::vector<int32_t> lengths(int64_t count) {
    std::vector<int32_t> all;
    for (int64_t i = 0; i < count; ++i) all.push_back(static_cast<int32_t>(length(i)));
    return all;
  }
};

struct TokenNet : torch::nn::Module {
  TokenNet() : embedding(30522, 4), output(4, 300) {
    register_module("embedding", embedding);
    register_module("output", output);
    at::NoGradGuard no_grad;
    for (Tensor& parameter : parameters())
      parameter.copy_(at::sin(at::arange(parameter.numel(), at::kDouble)).view_as(parameter));
  }
  Tensor forward(const Tensor& ids) { return output(embedding(ids)); }
  torch::nn::Embedding embedding;
  torch::nn::Linear output;
};

struct TokenTask : Module {
  TokenTask() : net_(model(std::make_shared<TokenNet>())) {}
  Loss loss_of(const Tensor& ids, const Tensor& labels) const {
    return nn::cross_entropy(net_->forward(ids).flatten(0, 1), labels.flatten());
  }
  std::shared_ptr<TokenNet> net_;
  int64_t samples = 0;  // of the fixture
};

struct Seq2Seq : TokenTask {
  Batch collate(std::span<const data::Sample> samples) const override {
    return data::CollatorForSeq2Seq{.padding = {.pad_token_id = 1, .pad_to_multiple_of = 8},
                                    .decoder_start_token_id = 2}(samples);
  }
  Loss training_step(const Batch& batch, StepContext&) override {
    EXPECT_EQ(batch.at("input_ids").size(1) % 8, 0);
    EXPECT_TRUE(batch.at("decoder_input_ids").select(1, 0).eq(2).all().item<bool>());
    return loss_of(batch.at("decoder_input_ids"), batch.at("labels"));
  }
};

struct MaskedLanguageModel : TokenTask {
  Batch collate(std::span<const data::Sample> samples) const override {
    return data::CollatorForLongestSequence{}(samples);
  }
  Loss training_step(const Batch& batch, StepContext& context) override {
    const auto masked =
        data::mask_tokens(batch.at("input_ids"), batch.sample_ids, context.forward.key,
                          {.mask_token_id = 103, .vocab_size = 300, .special_ids = {0, 101, 102}});
    return loss_of(masked.input_ids, masked.labels);
  }
};

class CollatingTest : public trainer::LoopTest {
 protected:
  template <class Task>
  NamedTensors train(int ranks) {
    recipe_.output = folder_.path() / std::to_string(ranks);
    recipe_.training.epochs = 1;
    recipe_.training.global_batch_size = 8;
    recipe_.evaluate.every = "never";
    const Sentences sentences(20);
    comm::run_rank_threads(ranks, [&](Group& group) {
      Task module;
      const Mesh mesh = make_mesh(recipe_, group);
      Trainer(recipe_, mesh, at::kCPU).fit(module, sentences, nullptr);
    });
    return SafetensorsFile(recipe_.output / "model/model.safetensors").load_all();
  }
  template <class Task>
  void expect_the_same_on_two_ranks() {
    const NamedTensors alone = train<Task>(1), two = train<Task>(2);
    for (const auto& [name, tensor] : alone) EXPECT_TRUE(tensor.allclose(two.at(name), 1e-9, 1e-12)) << name;
  }
};

TEST_F(CollatingTest, SequencesToSequences) { expect_the_same_on_two_ranks<Seq2Seq>(); }
TEST_F(CollatingTest, MaskedTokensDoNotDependOnRanks) { expect_the_same_on_two_ranks<MaskedLanguageModel>(); }

}  // namespace
}  // namespace stretto
