// Pre-trains a Llama as run_llama_nxd_ptl.py does with NeuronxDistributed and Lightning; docs/migrating.md
// shows the two side by side.
//
//   llama_pretrain examples/llama/nxd_config.json examples/llama/pretrain.yaml -N 4 [SECTION.KEY=VALUE ...]
#include <iostream>

#include "examples/llama/neuron_lt_module.h"

#include "stretto/data/block_dataset.h"
#include "stretto/model_config/heads.h"
#include "stretto/strategy/batch_plan.h"
#include "stretto/token_corpus/blocks.h"

namespace {

// The arguments of the script that are not settings of a recipe.
struct ModelArguments {
  std::filesystem::path config;
  void fields(stretto::settings::Fields& field) { field("config", config, "a Llama's config.json"); }
};
struct DataArguments {
  std::filesystem::path corpus;
  int64_t seq_len = 4096;
  void fields(stretto::settings::Fields& field) {
    field("corpus", corpus, "a corpus of `stretto data tokenize`");
    field("seq_len", seq_len, "tokens per sequence", stretto::settings::at_least(2).at_most(1e6));
  }
};
struct OptimizerArguments {
  double lr = 4e-4, weight_decay = 0.01;
  int64_t warmup_steps = 2000;
  void fields(stretto::settings::Fields& field) {
    field("lr", lr, "learning rate", stretto::settings::at_least(0));
    field("weight_decay", weight_decay, "weight decay", stretto::settings::at_least(0));
    field("warmup_steps", warmup_steps, "steps until lr is reached", stretto::settings::at_least(0));
  }
};
struct Arguments {
  ModelArguments model;
  DataArguments data;
  OptimizerArguments llama;
  void fields(stretto::settings::Fields& field) {
    field("model", model, "the model");
    field("data", data, "the corpus");
    field("llama", llama, "the optimizer and its schedule");
  }
};

// Called with the sizes of the data group, as by NeuronLightningDataModule. The Trainer divides a dataset
// among the ranks, and into batches, so that the function returns all of it.
using DataLoaderFn = std::function<std::unique_ptr<stretto::data::Dataset>(
    const std::filesystem::path& data_dir, int64_t batch_size, int dp_size, int dp_rank, int64_t seq_len)>;

std::unique_ptr<stretto::data::Dataset> create_llama_pretraining_dataset(
    const std::filesystem::path& data_dir, int64_t /*batch_size*/, int /*dp_size*/, int /*dp_rank*/,
    int64_t seq_len) {
  using stretto::token_corpus::CorpusBlocks;
  const auto corpus = std::make_shared<stretto::token_corpus::Corpus>(data_dir);
  const stretto::token_corpus::BlockOptions options = {.block_size = static_cast<int32_t>(seq_len),
                                                       .separate_documents = false};
  return std::make_unique<stretto::data::BlockDataset>(std::make_shared<CorpusBlocks>(corpus, options));
}

class NeuronLightningDataModule : public stretto::DataModule {
 public:
  NeuronLightningDataModule(DataLoaderFn dataloader_fn, std::filesystem::path data_dir, int64_t batch_size,
                            int64_t seq_len)
      : dataloader_fn_(std::move(dataloader_fn)),
        data_dir_(std::move(data_dir)),
        batch_size_(batch_size),
        seq_len_(seq_len) {}

  void setup(stretto::Stage, const stretto::DataParallelRank& ranks) override {
    train_ = dataloader_fn_(data_dir_, batch_size_, ranks.size, ranks.rank, seq_len_);
  }
  const stretto::data::Dataset* train() override { return train_.get(); }

 private:
  DataLoaderFn dataloader_fn_;
  std::filesystem::path data_dir_;
  int64_t batch_size_, seq_len_;
  std::unique_ptr<stretto::data::Dataset> train_;
};

std::shared_ptr<stretto::TextModel> make_llama(const nlohmann::json& config,
                                               const stretto::nn::TensorParallel& ranks) {
  return stretto::make_text_model(stretto::bundled_models(), stretto::heads::causal_language_model, config,
                                  "model.config", {.tensor_parallel = ranks});
}

stretto::FitResult train_llama(const NxdConfig& nxd_config, const Arguments& arguments,
                               const stretto::Run& run) {
  const OptimizerArguments& optimizer = arguments.llama;
  NeuronLTModule module(
      {.nxd_config = nxd_config,
       .model_fn = make_llama,
       .model_args = stretto::read_config_json(arguments.model.config),
       .opt_cls =
           [&] {
             return stretto::optim::adamw({.lr = optimizer.lr, .weight_decay = optimizer.weight_decay});
           },
       .scheduler_cls =
           [&] { return stretto::optim::linear_with_warmup({.num_warmup_steps = optimizer.warmup_steps}); }},
      run);
  NeuronLightningDataModule data(create_llama_pretraining_dataset, arguments.data.corpus,
                                 run.mesh.batch_plan().batch_size, arguments.data.seq_len);
  stretto::Trainer trainer(run.recipe, run.mesh, run.device);
  return trainer.fit(module, data);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: llama_pretrain NXD_CONFIG.json RECIPE.yaml [-N RANKS] [SECTION.KEY=VALUE ...]\n";
    return 2;
  }
  try {
    const NxdConfig nxd_config = read_nxd_config(argv[1]);
    std::vector<std::string> words = strategy_settings(nxd_config);
    std::vector<char*> command = {argv[0]};
    command.insert(command.end(), argv + 2, argv + argc);
    for (std::string& word : words) command.push_back(word.data());
    Arguments arguments;
    return stretto::run_program(
        static_cast<int>(command.size()), command.data(), arguments,
        [&](const stretto::Run& run) { return train_llama(nxd_config, arguments, run); });
  } catch (const stretto::Error& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
