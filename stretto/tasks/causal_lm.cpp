#include "stretto/tasks/causal_lm.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/stream_hash.h"
#include "stretto/base/strings.h"
#include "stretto/config/tasks/causal_lm.h"
#include "stretto/data/block_dataset.h"
#include "stretto/tasks/causal_language_model.h"
#include "stretto/tasks/fine_tuning.h"
#include "stretto/token_corpus/block_range.h"
#include "stretto/token_corpus/growing_file.h"
#include "stretto/token_corpus/tokenize.h"
#include "stretto/token_corpus/windows.h"
#include "stretto/trainer/folder/run_folder.h"

namespace stretto::tasks {
namespace {

using token_corpus::Blocks;
using token_corpus::Corpus;

// A corpus of `stretto data tokenize` or a text file, and which of its blocks are read.
struct TextSource {
  std::string name;  // the path, for messages
  std::filesystem::path path;
  std::string content;        // a hash
  double begin = 0, end = 1;  // shares of the blocks
};

token_corpus::DocumentRule rule_of(TextDocument document) {
  switch (document) {
    case TextDocument::line:
      return token_corpus::DocumentRule::line;
    case TextDocument::blank_line:
      return token_corpus::DocumentRule::blank_line;
    case TextDocument::file:
      break;
  }
  return token_corpus::DocumentRule::file;
}

TextSource open_text(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return {path.string(), path, Corpus(path).fingerprint()};
  StreamHash hash;
  token_corpus::hash_file(path, static_cast<int64_t>(std::filesystem::file_size(path)), hash);
  return {path.string(), path, token_corpus::checksum_text(hash.value())};
}

// The blocks of a source, and the corpus that they are of.
class TextBlocks : public data::BlockDataset {
 public:
  TextBlocks(std::shared_ptr<const Corpus> corpus, const std::shared_ptr<const Blocks>& blocks,
             int64_t pad_to_multiple_of)
      : BlockDataset(blocks, pad_to_multiple_of), corpus_(std::move(corpus)) {}

  const token_corpus::Manifest& manifest() const { return corpus_->manifest(); }

 private:
  std::shared_ptr<const Corpus> corpus_;
};

class CausalLm : public FineTuning<TextSource, TextBlocks, CausalLanguageModel> {
 public:
  explicit CausalLm(const TaskContext& context)
      : FineTuning(
            context,
            {.head = "language modelling", .unlabelled = "has no text", .predictions = "losses.jsonl"}),
        settings_(recipe_.task_settings.as<CausalLmConfig>()) {}

 private:
  TrainingFiles read_for_training() override;
  TextSource read_for_test(const std::vector<std::string>&) override { return open_text(*recipe_.data.test); }
  bool has_labels(const TextSource&) const override { return true; }
  std::string content_hash(const TextSource& source) const override { return source.content; }
  std::unique_ptr<CausalLanguageModel> make_module(const ModuleArguments& arguments) override {
    is_test_ = arguments.is_trained;
    return std::make_unique<CausalLanguageModel>(arguments.model, arguments.seed, models_);
  }
  void prepare(CausalLanguageModel&, const std::filesystem::path& tokenizer, const TextSource*) override {
    tokenizer_path_ = tokenizer;
  }
  std::unique_ptr<TextBlocks> tokenize(const TextSource& source, const TextModel& model,
                                       const text::Tokenizer& tokenizer, bool is_scored) const override;
  void describe(const TextSource& source, const TextBlocks& dataset) const override;
  void evaluate_on(CausalLanguageModel& module, const TextSource&, const TextBlocks& dataset) const override {
    const token_corpus::Manifest& manifest = dataset.manifest();
    module.evaluate_on(static_cast<double>(manifest.text_bytes) / static_cast<double>(manifest.tokens));
  }
  TestResults write_results(const TextSource& source, const CausalLanguageModel& module, const Tensor& rows,
                            const Metrics& metrics) const override;

  // The task's default as far as the model has positions.
  int64_t max_length(const TextModel& model) const override {
    const int64_t length = recipe_.data.max_length;
    return length == task_kind(recipe_).max_length ? std::min(length, model.limits().max_length) : length;
  }
  std::shared_ptr<const Blocks> blocks_of(const std::shared_ptr<const Corpus>& corpus, int32_t length) const;
  std::optional<int64_t> most_blocks(bool is_scored) const;

  const CausalLmConfig& settings_;
  std::filesystem::path tokenizer_path_;
  bool is_test_ = false;
};

CausalLm::TrainingFiles CausalLm::read_for_training() {
  TrainingFiles files{.train = open_text(*recipe_.data.train)};
  if (recipe_.data.validation) files.validation = open_text(*recipe_.data.validation);
  if (recipe_.data.validation_split) {
    files.validation = files.train;
    files.validation->begin = files.train.end = 1 - *recipe_.data.validation_split;
  }
  return files;
}

std::shared_ptr<const Blocks> CausalLm::blocks_of(const std::shared_ptr<const Corpus>& corpus,
                                                  int32_t length) const {
  if (is_test_ && settings_.stride) {
    return std::make_shared<token_corpus::Windows>(corpus, length, static_cast<int32_t>(*settings_.stride));
  }
  if (settings_.blocks == BlockKind::run_clm)
    return std::make_shared<token_corpus::CorpusBlocks>(corpus, token_corpus::run_clm_blocks(length));
  return std::make_shared<token_corpus::CorpusBlocks>(
      corpus, token_corpus::BlockOptions{.block_size = length,
                                         .separate_documents = settings_.blocks == BlockKind::documents});
}

std::optional<int64_t> CausalLm::most_blocks(bool is_scored) const {
  if (is_test_) return recipe_.data.max_test_samples;
  return is_scored ? recipe_.data.max_validation_samples : recipe_.data.max_train_samples;
}

std::unique_ptr<TextBlocks> CausalLm::tokenize(const TextSource& source, const TextModel& model,
                                               const text::Tokenizer& tokenizer, bool is_scored) const {
  const std::filesystem::path cache = recipe_.data.cache.value_or(recipe_.output / "cache");
  const auto corpus = token_corpus::open_corpus(source.path, tokenizer, tokenizer_path_, cache,
                                                {.documents = {.rule = rule_of(settings_.document),
                                                               .keep_newlines = settings_.keep_newlines,
                                                               .column = recipe_.data.text.value_or("text")},
                                                 .eos = settings_.append_eos,
                                                 .wait = true,
                                                 .names = {{"column", "data.text"},
                                                           {"eos", "causal_lm.append_eos"},
                                                           {"eos_token", "tokenizer.path"},
                                                           {"overwrite", "data.cache"},
                                                           {"output", "data.cache"}}});
  if (corpus->tokens() == 0) throw DataError("{}: there is no text in it", source.name);
  check_stride(recipe_, max_length(model));
  const auto blocks = blocks_of(corpus, static_cast<int32_t>(max_length(model)));
  const auto at = [&](double share) {
    return static_cast<int64_t>(std::llround(share * static_cast<double>(blocks->size())));
  };
  const int64_t first = at(source.begin);
  int64_t count = at(source.end) - first;
  if (const auto most = most_blocks(is_scored)) count = std::min(count, *most);
  if (count <= 0) {
    throw ConfigError(
        "{}: {} of {} tokens leave none for {}; set data.max_length or data.validation_split lower",
        source.name, counted(blocks->size(), "block"), blocks->block_size(),
        is_scored ? "validation" : "training");
  }
  return std::make_unique<TextBlocks>(corpus,
                                      std::make_shared<token_corpus::BlockRange>(blocks, first, count),
                                      recipe_.data.pad_to_multiple_of);
}

void CausalLm::describe(const TextSource& source, const TextBlocks& dataset) const {
  const token_corpus::Manifest& manifest = dataset.manifest();
  log::info("data       {}: {} of up to {} tokens, of a text of {} tokens in {}, {:.2f} bytes per token",
            source.name, counted(dataset.size(), "block"), dataset.block_size(), manifest.tokens,
            counted(manifest.documents, "document"),
            static_cast<double>(manifest.text_bytes) / static_cast<double>(manifest.tokens));
}

TestResults CausalLm::write_results(const TextSource&, const CausalLanguageModel&, const Tensor& rows,
                                    const Metrics& metrics) const {
  std::string lines;
  const auto row = rows.accessor<double, 2>();
  for (int64_t i = 0; i < rows.size(0); ++i) {
    nlohmann::ordered_json record = {{"block", i}, {"tokens", static_cast<int64_t>(row[i][1])}};
    if (row[i][1] > 0) record["loss"] = row[i][0] / row[i][1];
    lines += record.dump() + "\n";
  }
  trainer::RunFolder(recipe_.output).write_text("losses.jsonl", lines);
  return {nlohmann::ordered_json(metrics), {}};
}

}  // namespace

std::unique_ptr<Task> make_causal_lm(const TaskContext& context) {
  return std::make_unique<CausalLm>(context);
}

}  // namespace stretto::tasks
