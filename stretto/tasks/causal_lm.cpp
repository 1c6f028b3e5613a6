#include "stretto/tasks/causal_lm.h"

#include <algorithm>
#include <cmath>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/stream_hash.h"
#include "stretto/base/strings.h"
#include "stretto/config/mixture.h"
#include "stretto/config/tasks/causal_lm.h"
#include "stretto/data/block_dataset.h"
#include "stretto/tasks/causal_language_model.h"
#include "stretto/tasks/fine_tuning.h"
#include "stretto/tasks/preparation.h"
#include "stretto/token_corpus/block_range.h"
#include "stretto/token_corpus/byte_stream.h"
#include "stretto/token_corpus/growing_file.h"
#include "stretto/token_corpus/mixture.h"
#include "stretto/token_corpus/tokenize.h"
#include "stretto/token_corpus/windows.h"
#include "stretto/trainer/folder/run_folder.h"

namespace stretto::tasks {
namespace {

using token_corpus::Blocks;
using token_corpus::Corpus;
using token_corpus::CorpusBlocks;

// Corpora of `stretto data tokenize`, text files and folders with them, and which of their blocks are read.
struct TextSource {
  std::string name;   // the path or the setting, for messages
  std::string label;  // the setting with its place, which begins messages about the text
  std::vector<MixturePart> parts;
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

std::string hash_text(const std::filesystem::path& path, const std::string& column) {
  StreamHash hash;
  for (const std::filesystem::path& file : token_corpus::text_files(path)) {
    if (std::filesystem::is_directory(file)) return Corpus(path).fingerprint();
    token_corpus::require_text(file, column);
    token_corpus::hash_file(file, static_cast<int64_t>(std::filesystem::file_size(file)), hash);
  }
  return token_corpus::checksum_text(hash.value());
}

std::string column_of(const Recipe& recipe) { return recipe.data.text.value_or("text"); }

// The text of a setting. Throws DataError that begins with it.
TextSource open_text(const Recipe& recipe, const char* setting, const std::vector<MixturePart>& parts) {
  TextSource source{parts.size() == 1 ? parts.front().path.string() : setting, recipe.origins.label(setting),
                    parts, ""};
  with_label(source.label, [&] {
    for (const auto& [path, weight] : parts) {
      const std::string hash = hash_text(path, column_of(recipe));
      source.content += parts.size() == 1 ? hash : fmt::format("{} {}\n", hash, weight);
    }
  });
  return source;
}

TextSource open_text(const Recipe& recipe, const char* setting,
                     const std::optional<std::filesystem::path>& path) {
  return open_text(recipe, setting, std::vector<MixturePart>{{path.value(), 1}});
}

// A corpus, and how many of the samples are its blocks.
struct SampledCorpus {
  std::shared_ptr<const Corpus> corpus;
  int64_t samples, blocks;
};

// The blocks of a source, and the corpora that they are of.
class TextBlocks : public data::BlockDataset {
 public:
  TextBlocks(std::vector<SampledCorpus> corpora, const std::shared_ptr<const Blocks>& blocks,
             int64_t pad_to_multiple_of)
      : BlockDataset(blocks, pad_to_multiple_of), corpora_(std::move(corpora)) {}

  const std::vector<SampledCorpus>& corpora() const { return corpora_; }

 private:
  std::vector<SampledCorpus> corpora_;
};

double bytes_per_token(const Corpus& corpus) {
  const token_corpus::Manifest& manifest = corpus.manifest();
  return static_cast<double>(manifest.text_bytes) / static_cast<double>(manifest.tokens);
}

class CausalLm : public FineTuning<TextSource, TextBlocks, CausalLanguageModel> {
 public:
  explicit CausalLm(const TaskContext& context)
      : FineTuning(context, {.head = "language modelling",
                             .unlabelled = "has no text",
                             .predictions = "losses.jsonl",
                             .metrics = {"loss", "perplexity", "accuracy", "bits_per_byte"}}),
        settings_(recipe_.task_settings.as<CausalLmConfig>()) {}

 private:
  TrainingFiles read_for_training() override;
  TextSource read_for_test(const std::vector<std::string>&) override {
    return open_text(recipe_, "data.test", recipe_.data.test);
  }
  bool has_labels(const TextSource&) const override { return true; }
  std::string content_hash(const TextSource& source) const override { return source.content; }
  std::unique_ptr<CausalLanguageModel> make_module(const ModuleArguments& arguments) override {
    is_test_ = arguments.is_trained;
    return std::make_unique<CausalLanguageModel>(arguments.model, arguments.seed, models_, arguments.ranks);
  }
  void prepare(CausalLanguageModel& module, const std::filesystem::path& tokenizer,
               const TextSource* train) override;
  std::unique_ptr<TextBlocks> tokenize(const TextSource& source, const TextModel& model,
                                       const text::Tokenizer& tokenizer, bool is_scored) const override;
  void describe(const TextSource& source, const TextBlocks& dataset) const override;
  void evaluate_on(CausalLanguageModel& module, const TextSource&, const TextBlocks& dataset) const override {
    module.evaluate_on(bytes_per_token(*dataset.corpora().front().corpus));
  }
  TestResults write_results(const TextSource& source, const CausalLanguageModel& module,
                            const Predictions& predictions, const Metrics& metrics) const override;

  // The task's default as far as the model has positions.
  int64_t max_length(const TextModel& model) const override {
    const int64_t length = recipe_.data.max_length;
    return length == task_kind(recipe_).max_length ? std::min(length, model.limits().max_length) : length;
  }
  std::shared_ptr<const Corpus> open_corpus(const std::filesystem::path& path,
                                            const text::Tokenizer& tokenizer) const;
  std::shared_ptr<const CorpusBlocks> blocks_of(const std::shared_ptr<const Corpus>& corpus,
                                                int32_t length) const;
  std::unique_ptr<TextBlocks> mix(const TextSource& source, const text::Tokenizer& tokenizer,
                                  int32_t length) const;
  std::optional<int64_t> most_blocks(bool is_scored) const;

  const CausalLmConfig& settings_;
  std::filesystem::path tokenizer_path_;
  bool is_test_ = false;
};

CausalLm::TrainingFiles CausalLm::read_for_training() {
  TrainingFiles files{.train = recipe_.data.train ? open_text(recipe_, "data.train", recipe_.data.train)
                                                  : open_text(recipe_, "data.mixture", mixture_of(recipe_))};
  if (recipe_.data.validation)
    files.validation = open_text(recipe_, "data.validation", recipe_.data.validation);
  if (recipe_.data.validation_split) {
    files.validation = files.train;
    files.validation->begin = files.train.end = 1 - *recipe_.data.validation_split;
  }
  return files;
}

void CausalLm::prepare(CausalLanguageModel& module, const std::filesystem::path& tokenizer,
                       const TextSource* train) {
  tokenizer_path_ = tokenizer;
  if (train == nullptr) return;
  const bool is_new = !recipe_.model.path, writes = !recipe_.evaluate.samples.empty();
  if (!is_new && !writes) return;
  text::Tokenizer read = text::Tokenizer::load(tokenizer, {.lowercase = recipe_.tokenizer.lowercase,
                                                           .add_prefix_space = prefix_space(recipe_),
                                                           .log_choices = false});
  // The default of transformers' configuration is a token of the family's first model.
  if (is_new) module.end_texts_with(read.eos_id());
  if (writes)
    module.write_with(std::move(read), recipe_.evaluate.samples, recipe_.origins.label("evaluate.samples"));
}

std::shared_ptr<const CorpusBlocks> CausalLm::blocks_of(const std::shared_ptr<const Corpus>& corpus,
                                                        int32_t length) const {
  if (settings_.blocks == BlockKind::run_clm)
    return std::make_shared<CorpusBlocks>(corpus, token_corpus::run_clm_blocks(length));
  return std::make_shared<CorpusBlocks>(
      corpus, token_corpus::BlockOptions{.block_size = length,
                                         .separate_documents = settings_.blocks == BlockKind::documents});
}

std::optional<int64_t> CausalLm::most_blocks(bool is_scored) const {
  if (is_test_) return recipe_.data.max_test_samples;
  return is_scored ? recipe_.data.max_validation_samples : recipe_.data.max_train_samples;
}

std::shared_ptr<const Corpus> CausalLm::open_corpus(const std::filesystem::path& path,
                                                    const text::Tokenizer& tokenizer) const {
  const std::filesystem::path cache = recipe_.data.cache.value_or(recipe_.output / "cache");
  auto corpus = token_corpus::open_corpus(path, tokenizer, tokenizer_path_, cache,
                                          {.documents = {.rule = rule_of(settings_.document),
                                                         .keep_newlines = settings_.keep_newlines,
                                                         .column = column_of(recipe_)},
                                           .eos = settings_.append_eos,
                                           .wait = true,
                                           .names = {{"column", "data.text"},
                                                     {"eos", "causal_lm.append_eos"},
                                                     {"eos_token", "tokenizer.path"},
                                                     {"overwrite", "data.cache"},
                                                     {"output", "data.cache"}}});
  const bool separate = settings_.blocks == BlockKind::documents;
  if (corpus->tokens() > (separate ? corpus->documents() : 1)) return corpus;
  throw DataError(
      "{}: the text has {} in {}; a token is predicted from those before it in its document, so a document needs 2 tokens or more",
      path.string(), counted(corpus->tokens(), "token"), counted(corpus->documents(), "document"));
}

std::unique_ptr<TextBlocks> CausalLm::mix(const TextSource& source, const text::Tokenizer& tokenizer,
                                          int32_t length) const {
  std::vector<SampledCorpus> corpora;
  std::vector<token_corpus::WeightedBlocks> parts;
  for (const auto& [path, weight] : source.parts) {
    const auto corpus = with_label(source.label, [&, &path = path] { return open_corpus(path, tokenizer); });
    parts.push_back({blocks_of(corpus, length), weight});
    corpora.push_back({corpus, 0, parts.back().blocks->size()});
  }
  try {
    const auto mixture = std::make_shared<const token_corpus::Mixture>(std::move(parts));
    for (size_t i = 0; i < corpora.size(); ++i) corpora[i].samples = mixture->count(i);
    return std::make_unique<TextBlocks>(std::move(corpora), mixture, recipe_.data.pad_to_multiple_of);
  } catch (const ConfigError& error) {
    throw ConfigError("{}: {}", recipe_.origins.label("data.mixture"), error.what());
  }
}

std::unique_ptr<TextBlocks> CausalLm::tokenize(const TextSource& source, const TextModel& model,
                                               const text::Tokenizer& tokenizer, bool is_scored) const {
  const auto length = static_cast<int32_t>(max_length(model));
  check_stride(recipe_, length);
  if (source.parts.size() > 1) return mix(source, tokenizer, length);
  const auto corpus =
      with_label(source.label, [&] { return open_corpus(source.parts.front().path, tokenizer); });
  const std::shared_ptr<const Blocks> blocks =
      is_test_ && settings_.stride
          ? std::make_shared<token_corpus::Windows>(corpus, length, static_cast<int32_t>(*settings_.stride))
          : std::shared_ptr<const Blocks>(blocks_of(corpus, length));
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
  return std::make_unique<TextBlocks>(std::vector<SampledCorpus>{{corpus, count, count}},
                                      std::make_shared<token_corpus::BlockRange>(blocks, first, count),
                                      recipe_.data.pad_to_multiple_of);
}

void CausalLm::describe(const TextSource& source, const TextBlocks& dataset) const {
  for (size_t i = 0; i < dataset.corpora().size(); ++i) {
    const auto& [corpus, samples, blocks] = dataset.corpora()[i];
    const std::string share =
        dataset.corpora().size() == 1
            ? ""
            : fmt::format(" ({:.1f} % of the samples, each {:.2f} times)",
                          100 * static_cast<double>(samples) / static_cast<double>(dataset.size()),
                          static_cast<double>(samples) / static_cast<double>(blocks));
    log::info("data       {}: {} of up to {} tokens{}, of a text of {} tokens in {}, {:.2f} bytes per token",
              source.parts[i].path.string(), counted(blocks, "block"), dataset.block_size(), share,
              corpus->manifest().tokens, counted(corpus->manifest().documents, "document"),
              bytes_per_token(*corpus));
  }
}

TestResults CausalLm::write_results(const TextSource&, const CausalLanguageModel&,
                                    const Predictions& predictions, const Metrics& metrics) const {
  std::string lines;
  const auto row = predictions.rows.accessor<double, 2>();
  for (int64_t i = 0; i < row.size(0); ++i) {
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
