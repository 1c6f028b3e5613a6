#include "stretto/nn/tensor_parallel.h"

#include <map>
#include <mutex>

#include "stretto/base/message_support.h"
#include "stretto/base/tensor_layout.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/model_config/outline.h"
#include "stretto/models/decoder_support.h"
#include "stretto/nn/initial_values.h"

// Models whose layers are divided among ranks compute what whole ones do.
namespace stretto {
namespace {

// A configuration in tests/golden with changes, so that 4 ranks can divide the heads, but not the vocabulary
// or the inner columns evenly.
struct DividedCase {
  const char* folder;
  nlohmann::json changes;
  std::string head = heads::causal_language_model;
  std::optional<double> dropout = std::nullopt;
};

std::vector<DividedCase> divided_cases() {
  const nlohmann::json llama = {
      {"num_attention_heads", 8}, {"num_key_value_heads", 4}, {"head_dim", 8}, {"intermediate_size", 23}};
  nlohmann::json dropping = llama, few = llama, single = llama;
  dropping["attention_dropout"] = 0.5;
  few["num_key_value_heads"] = 2;  // on 4 ranks, two have the same head of keys and values
  single["num_key_value_heads"] = 1;
  return {
      {"gpt2/plain",
       {{"n_embd", 24}, {"n_head", 4}, {"attn_pdrop", 0.5}, {"resid_pdrop", 0.5}, {"embd_pdrop", 0.5}}},
      {"gpt2/untied", {{"n_embd", 24}, {"n_head", 4}}},
      {"llama/plain", dropping},
      {"llama/biases", llama},
      {"llama/mistral", llama},
      {"llama/qwen2", llama},
      {"llama/qwen3", llama},
      {"llama/plain", few},
      {"llama/biases", single},
      {"llama/qwen3", few},
      {"bert/gelu", {{"intermediate_size", 47}}, heads::sequence_classification, 0.3},
      {"bert_heads/token", {}, heads::token_classification, 0.3},
      {"roberta/sequence", {}, heads::sequence_classification, 0.3},
      {"roberta/qa", {}, heads::question_answering, 0.3},
      {"electra/token", {}, heads::token_classification, 0.3},
      {"distilbert/sequence", {{"hidden_dim", 47}}, heads::sequence_classification, 0.3},
      {"distilbert/qa", {}, heads::question_answering, 0.3},
      {"bart/gelu", {{"encoder_ffn_dim", 47}, {"decoder_ffn_dim", 46}}, heads::sequence_classification, 0.3}};
}

nlohmann::json case_config(const DividedCase& one) {
  nlohmann::json config = stretto::config_of(one.folder);
  if (one.changes.is_object()) config.update(one.changes);
  return config;
}

std::shared_ptr<TextModel> make_divided(const DividedCase& one, const nn::TensorParallel& ranks,
                                        at::ScalarType dtype) {
  const auto model = make_text_model(bundled_models(), one.head, case_config(one), "config.json",
                                     {.dropout = one.dropout, .tensor_parallel = ranks});
  nn::fill_parameters(*model, *initial_values(*model, 5));
  // Larger values than the initial ones, so that every part of the model matters.
  const at::NoGradGuard no_grad;
  for (Tensor& parameter : model->parameters())
    if (parameter.dim() == 2) parameter.mul_(10);
  model->to(dtype);
  return model;
}

struct DividedResults {
  NamedTensors values, gradients;  // of whole tensors
  std::vector<Tensor> logits;      // of each rank
  std::vector<double> losses;
};

void join_part(const TensorLayout& layout, const Tensor& part, Tensor& whole) {
  if (!whole.defined()) whole = at::full(layout.global, NAN, part.options());
  const Tensor flat = whole.view({-1}), local = part.detach().contiguous().view({-1});
  for (const LocalRun& run : layout.runs()) {
    flat.slice(0, run.global, run.global + run.elements)
        .copy_(local.slice(0, run.local, run.local + run.elements));
  }
}

// Ranks with copies of a part have terms of its gradient.
void join_gradient(const TensorLayout& layout, const Tensor& part, Tensor& whole) {
  if (layout.cuts.empty() || layout.cuts[0].copies == 1) return join_part(layout, part, whole);
  if (!whole.defined()) whole = at::zeros(layout.global, part.options());
  Tensor term = at::zeros_like(whole);
  join_part(layout, part, term);
  whole.add_(term);
}

DividedResults run_divided(const DividedCase& one, int ranks, at::ScalarType dtype, const Batch& batch,
                           int64_t recompute_every, bool sequence = false) {
  DividedResults results;
  results.logits.resize(static_cast<size_t>(ranks));
  results.losses.resize(static_cast<size_t>(ranks));
  std::mutex mutex;
  comm::run_rank_threads(ranks, [&](Group& group) {
    const auto model = make_divided(one, {ranks == 1 ? nullptr : &group, sequence}, dtype);
    const CausalDecoder* decoder = model->capabilities().causal_decoder;
    const nn::Context context = {.training = true, .key = 3, .recompute_every = recompute_every};
    const Tensor rows = model->forward(batch, context);
    const Tensor loss = decoder != nullptr ? decoder->loss(rows, batch.at("labels"), context).sum
                                           : (rows.square() + rows).sum();
    loss.backward();
    const auto rank = static_cast<size_t>(group.rank());
    {
      const at::NoGradGuard no_grad;
      results.logits[rank] = decoder != nullptr ? decoder->logits(rows) : rows.detach();
    }
    results.losses[rank] = loss.item<double>();
    const std::scoped_lock lock(mutex);
    for (const nn::LayerParameter& parameter : nn::layer_parameters(*model)) {
      const TensorLayout layout = parameter.layout();
      const Tensor gradient = parameter.tensor.grad();
      join_part(layout, parameter.tensor, results.values[parameter.name]);
      join_gradient(layout, gradient, results.gradients[parameter.name]);
      if (layout.cuts.empty() && group.rank() > 0) {
        EXPECT_TRUE(at::equal(results.gradients.at(parameter.name), gradient))
            << parameter.name << ": equal gradients of copies";
      }
    }
  });
  return results;
}

void expect_results_of_whole(const DividedResults& divided, const DividedResults& whole, double tolerance) {
  for (size_t rank = 0; rank < divided.logits.size(); ++rank) {
    EXPECT_LT(relative_difference(divided.logits[rank], whole.logits[0]), tolerance);
    EXPECT_NEAR(divided.losses[rank] / whole.losses[0], 1, tolerance);
    EXPECT_TRUE(at::equal(divided.logits[rank], divided.logits[0])) << "equal on all ranks";
  }
  for (const auto& [name, gradient] : whole.gradients) {
    EXPECT_TRUE(at::equal(divided.values.at(name), whole.values.at(name))) << name << ": initial value";
    EXPECT_LT((divided.gradients.at(name) - gradient).abs().max().item<double>(),
              tolerance * std::max(1.0, gradient.abs().max().item<double>()))
        << name;
  }
}

TEST(DividedModel, LogitsLossAndGradientsEqualThoseOfTheWholeModel) {
  for (const DividedCase& one : divided_cases()) {
    const Batch batch = packed_batch(golden_of(one.folder));
    for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
      const DividedResults whole = run_divided(one, 1, dtype, batch, 0);
      for (const int ranks : {2, 4}) {
        SCOPED_TRACE(fmt::format("{} on {} ranks", one.folder, ranks));
        expect_results_of_whole(run_divided(one, ranks, dtype, batch, /*recompute_every=*/ranks == 4 ? 1 : 0),
                                whole, dtype == at::kDouble ? 1e-11 : 2e-5);
      }
    }
  }
}

// Sequence parallelism. Other dropout masks would change the results.
TEST(DividedModel, DividedRowsGiveTheResultsOfWholeOnes) {
  for (const DividedCase& one : divided_cases()) {
    const Batch batch = packed_batch(golden_of(one.folder));
    const DividedResults whole = run_divided(one, 1, at::kDouble, batch, 0);
    for (const int ranks : {2, 4}) {
      SCOPED_TRACE(fmt::format("{} on {} ranks", one.folder, ranks));
      expect_results_of_whole(
          run_divided(one, ranks, at::kDouble, batch, /*recompute_every=*/ranks == 4 ? 1 : 0, true), whole,
          1e-11);
    }
  }
}

// A sequence of `more` tokens, if that is not 0, and one of one. `last`: the last token of each, if that is
// not negative.
Batch short_batch(const Tensor& ids, int64_t more, int64_t last) {
  const Tensor own = ids.slice(0, 0, 1 + more).clone(), rows = at::arange(1 + more);
  if (last >= 0) own.slice(0, std::max<int64_t>(0, more - 1)).fill_(last);
  Batch batch;
  batch.tensors["input_ids"] = batch.tensors["labels"] = own;
  batch.tensors["token_type_ids"] = at::zeros_like(own);
  batch.tensors["cu_seqlens"] =
      more == 0 ? at::tensor({0, 1}, at::kLong) : at::tensor({int64_t{0}, more, 1 + more}, at::kLong);
  batch.tensors["samples"] = rows.eq(more).to(at::kLong);
  batch.tensors["position_ids"] = rows.remainder(std::max<int64_t>(1, more));
  return batch;
}

// Down to fewer rows than ranks: the missing ones are padding.
TEST(DividedModel, RowsThatRanksDoNotDivideAreExact) {
  for (const DividedCase& one : divided_cases()) {
    const std::string folder = one.folder;
    const bool is_bart = folder == "bart/gelu";
    if (folder != "gpt2/plain" && folder != "roberta/sequence" && folder != "distilbert/qa" && !is_bart)
      continue;
    const Tensor ids = golden_of(one.folder).at("ids");
    for (const int64_t more : {0, 2, 4}) {
      const Batch batch =
          short_batch(ids, more, is_bart ? case_config(one).at("eos_token_id").get<int64_t>() : -1);
      const DividedResults whole = run_divided(one, 1, at::kDouble, batch, 0);
      for (const int ranks : {2, 4}) {
        SCOPED_TRACE(fmt::format("{}: {} tokens on {} ranks", folder, 1 + more, ranks));
        expect_results_of_whole(run_divided(one, ranks, at::kDouble, batch, 0, true), whole, 1e-11);
      }
    }
  }
}

TEST(DividedModel, OutlinesKnowTheNumbersOfRanks) {
  for (const DividedCase& one : divided_cases()) {
    for (const int ranks : {2, 3, 4, 8}) {
      bool divides = true;
      try {
        comm::run_rank_threads(ranks, [&](Group& group) {
          make_text_model(bundled_models(), one.head, case_config(one), "config.json",
                          {.tensor_parallel = {&group}});
        });
      } catch (const ConfigError&) {
        divides = false;
      }
      EXPECT_EQ(outline_of(case_config(one), "config.json", one.head)->divides_among(ranks), divides)
          << one.folder << " on " << ranks;
    }
  }
}

TEST(DividedModel, ModelsThatCannotBeDividedAreRefused) {
  comm::run_rank_threads(3, [](Group& group) {
    const auto make_model = [&](const std::string& head, const nlohmann::json& config) {
      make_text_model(bundled_models(), head, config, "config.json", {.tensor_parallel = {&group}});
    };
    EXPECT_THAT(
        message_of<ConfigError>(
            [&] { make_model(heads::causal_language_model, stretto::config_of("llama/qwen3")); }),
        has_all("config.json: ", "4 attention heads", "2 heads of keys and values", "evenly among 3 ranks"));
    nlohmann::json three = stretto::config_of("llama/qwen3");
    three.update({{"num_attention_heads", 6}, {"num_key_value_heads", 2}});
    EXPECT_THAT(
        message_of<ConfigError>([&] { make_model(heads::causal_language_model, three); }),
        has_all("6 attention heads", "2 heads of keys and values", "tp must divide the first number"));
    three.update({{"num_attention_heads", 4}, {"num_key_value_heads", 1}});
    EXPECT_THAT(message_of<ConfigError>([&] { make_model(heads::causal_language_model, three); }),
                has_all("4 attention heads", "1 head of keys and values"));
    ModelRegistry models = bundled_models();
    models.add({.name = "odd", .heads = {{heads::causal_language_model, {.make = {}, .divides = true}}}});
    EXPECT_THAT(message_of<ConfigError>([&] {
                  make_text_model(models, heads::causal_language_model, {{"model_type", "odd"}},
                                  "config.json", {.tensor_parallel = {&group, /*sequence=*/true}});
                }),
                has_all("rows between the layers of \"odd\"", "cannot be divided", "sequence parallelism"));
    EXPECT_THAT(message_of<ConfigError>([&] {
                  make_model(heads::token_classification, stretto::config_of("sequence_tagger/gru"));
                }),
                has_all("of a sequence-tagger", "only a transformer",
                        "(\"transformer\", \"fine_tune\": true)", "divided among ranks (tp)"));
  });
}

}  // namespace
}  // namespace stretto
