#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/files.h"
#include "stretto/base/temp_folder.h"
#include "stretto/corpus/squad.h"
#include "stretto/corpus/tagged.h"
#include "stretto/data/question_dataset.h"
#include "stretto/data/reader.h"
#include "stretto/data/tagged_dataset.h"
#include "stretto/data/text_dataset.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/heads.h"
#include "stretto/serve/pipeline.h"
#include "stretto/tasks/preparation.h"
#include "stretto/tensor/safetensors.h"
#include "stretto/text/copy_tokenizer.h"

// Training and serving compute equal features from equal inputs: ids, types, positions and windows.
namespace stretto::serve {
namespace {

// A model that records its batches and predicts nothing.
class RecordingModel : public TextModel {
 public:
  RecordingModel(std::string head, int64_t max_length, std::vector<std::string> labels, WordReader words,
                 std::vector<Batch>& batches)

      : head_(std::move(head)),
        max_length_(max_length),
        labels_(std::move(labels)),
        words_(std::move(words)),
        batches_(batches) {}

  Tensor forward(const Batch& batch, const nn::Context&) const override {
    batches_.push_back(batch);
    const int64_t rows = head_ == heads::sequence_classification ? batch.at("cu_seqlens").numel() - 1
                                                                 : batch.at("input_ids").numel();
    return at::zeros({rows, head_ == heads::question_answering ? 2 : std::ssize(labels_)});
  }
  nn::InitialValue initial_value(const nn::LayerParameter&) const override { return {}; }
  nlohmann::json config_json(const nlohmann::json& original) const override { return original; }
  const std::vector<std::string>& labels() const override { return labels_; }
  TextLimits limits() const override { return {100'000, max_length_}; }
  Capabilities capabilities() const override { return {.word_reader = &words_}; }

 private:
  std::string head_;
  int64_t max_length_;
  std::vector<std::string> labels_;
  WordReader words_;
  std::vector<Batch>& batches_;
};

class Features : public ::testing::TestWithParam<std::string> {  // a tokenizer of the golden folder
 protected:
  Features() {
    const auto golden = std::filesystem::path(STRETTO_SOURCE_DIR) / "tests/golden/tokenizer" / GetParam();
    if (std::filesystem::is_directory(golden)) {
      std::filesystem::copy(golden, folder_.path());
    } else {
      std::filesystem::copy_file(golden, folder_.path() / "vocab.txt");
    }
  }

  text::Tokenizer tokenizer_of_training(const std::string& task) const {
    Recipe recipe;
    recipe.task = task;
    return tasks::load_tokenizer(recipe, folder_.path());
  }

  // The batch that a pipeline makes of the inputs, from which records_ are computed.
  Batch served(const std::string& head, int64_t max_length, std::span<const PipelineInput> inputs,
               const WordReader& words = {}) {
    const nlohmann::json config = {{"model_type", "recording"},
                                   {"architectures", {heads::architecture("Recording", head)}},
                                   {"id2label", {{"0", "O"}, {"1", "B-PER"}}}};
    write_file_atomic(folder_.path() / "config.json", config.dump());
    save_safetensors(folder_.path() / "model.safetensors", NamedTensors());  // it has no parameters
    std::vector<Batch> batches;
    const auto make = [&](const nlohmann::json& json, const std::string& source, const TextModelOptions&) {
      return std::make_shared<RecordingModel>(head, max_length, read_labels(json, source), words, batches);
    };
    ModelRegistry models = bundled_models();
    models.add({.name = "recording", .heads = {{head, {make}}}});
    records_ = load_pipeline(folder_.path(), {}, models)->predict(inputs, "logits");
    EXPECT_EQ(batches.size(), 1);
    return batches.at(0);
  }

  const TempFolder folder_, cache_;
  std::vector<nlohmann::ordered_json> records_;
};

Batch trained(const data::Dataset& dataset) {
  std::vector<int64_t> samples(static_cast<size_t>(dataset.size()));
  std::iota(samples.begin(), samples.end(), 0);
  return dataset.pack(samples);
}

void expect_same_features(const Batch& training, const Batch& serving) {
  for (const char* name : {"input_ids", "token_type_ids", "position_ids", "samples", "cu_seqlens"}) {
    const Tensor &wanted = training.at(name), &found = serving.at(name);
    EXPECT_TRUE(at::equal(wanted, found)) << name << " in training\n" << wanted << "\nin serving\n" << found;
  }
}

const std::string long_text =
    "the film  was, on the whole, caf\u00e9-like and New York is \u4e2d\u6587 x y z a b c d e f";

TEST_P(Features, TextsAreEqual) {
  const std::vector<PipelineInput> inputs = {{"a film"}, {long_text}, {"Don't!"}};
  std::string file = "text\tlabel\n";
  for (size_t i = 0; i < inputs.size(); ++i) file += fmt::format("{}\t{}\n", inputs[i].text, i % 2);
  const data::TextDataset dataset(data::parse_rows(file, "a.tsv"),
                                  tokenizer_of_training("text-classification"), 12, cache_.path());
  expect_same_features(trained(dataset), served(heads::sequence_classification, 12, inputs));
}

TEST_P(Features, PairsAreEqual) {
  const std::vector<PipelineInput> inputs = {{"a film", "the film"}, {long_text, "a"}, {"a b c", long_text}};
  std::string file = "sentence1\tsentence2\tlabel\n";
  for (size_t i = 0; i < inputs.size(); ++i)
    file += fmt::format("{}\t{}\t{}\n", inputs[i].text, *inputs[i].text_pair, i % 2);
  const data::TextDataset dataset(data::parse_rows(file, "a.tsv"),
                                  tokenizer_of_training("text-classification"), 12, cache_.path());
  expect_same_features(trained(dataset), served(heads::sequence_classification, 12, inputs));
}

// Sentences, the second of which is split into several windows, as a file and as inputs.
struct Sentences {
  Sentences() {
    for (const auto& sentence : words) {
      for (const std::string& word : sentence) file += word + " O\n";
      file += '\n';
      inputs.push_back({fmt::format("{}", fmt::join(sentence, " ")), std::nullopt, sentence});
    }
  }

  const std::vector<std::vector<std::string>> words = {
      {"a", "film"},
      {"the", "film", "was", "caf\u00e9-like", ",", "New", "York", "is", "\u4e2d\u6587", "x", "y", "z"},
      {"Don't"}};
  std::string file;
  std::vector<PipelineInput> inputs;
};

TEST_P(Features, WordsAreEqual) {
  const Sentences sentences;
  const data::TaggedDataset dataset(
      corpus::parse_tagged(sentences.file, "a.conll"), data::LabelSet({"O", "B-PER"}),
      tokenizer_of_training("token-classification"), {.max_length = 12, .stride = 3, .cache = cache_.path()});
  ASSERT_GT(dataset.size(), std::ssize(sentences.words));
  expect_same_features(trained(dataset), served(heads::token_classification, 12, sentences.inputs));
}

// A model of whole words reads each sentence in one window, with the characters and id of each word, and tags
// each word once.
TEST_P(Features, WholeWordsAreEqual) {
  const Sentences sentences;
  const std::string characters = "abcdefim\u00e9-";
  const auto words_folder = folder_.path() / text::words_folder;
  std::filesystem::create_directories(words_folder);
  write_file_atomic(words_folder / "tokenizer.json",
                    R"({"pre_tokenizer": {"type": "WhitespaceSplit"}, "model": {"type": "WordLevel",
    "vocab": {"<unk>": 0, "film": 1, "York": 2}, "unk_token": "<unk>"}})");
  const text::Tokenizer words = text::Tokenizer::load(words_folder);
  const data::TaggedDataset dataset(corpus::parse_tagged(sentences.file, "a.conll"),
                                    data::LabelSet({"O", "B-PER"}),
                                    tokenizer_of_training("token-classification"),
                                    {.max_length = 12,
                                     .stride = 3,
                                     .characters = characters,
                                     .whole_words = true,
                                     .words = &words,
                                     .cache = cache_.path()});
  ASSERT_GT(dataset.size(), std::ssize(sentences.words));
  const Batch training = trained(dataset);
  const Batch serving = served(heads::token_classification, 12, sentences.inputs,
                               {.characters = characters, .whole_words = true, .word_ids = true});
  expect_same_features(training, serving);
  for (const char* name : {"words", "token_words", "word_ids", "characters", "character_cu_seqlens"})
    EXPECT_TRUE(at::equal(training.at(name), serving.at(name))) << name << "\n" << serving.at(name);
  EXPECT_EQ(serving.at("word_ids").eq(1).sum().item<int64_t>(), 2) << "films";
  EXPECT_GT(serving.at("characters").numel(), 0);
  for (size_t i = 0; i < sentences.words.size(); ++i) {
    std::vector<std::string> tagged;
    for (const auto& token : records_[i].at("tokens")) tagged.push_back(token.at("word"));
    EXPECT_EQ(tagged, sentences.words[i]);
  }
}

// Training and serving have the same default lengths of window and stride, also for models with fewer
// positions, and both ignore white space in front of a question.
TEST_P(Features, QuestionsAreEqual) {
  const text::Tokenizer tokenizer = tokenizer_of_training("question-answering");
  std::string context = long_text;
  while (tokenizer.encode(context).size() < 600) context += " " + long_text;
  const std::vector<PipelineInput> inputs = {{"what?", context}, {"  who was it", "the film"}};
  nlohmann::json rows;
  for (size_t i = 0; i < inputs.size(); ++i)
    rows.push_back({{"id", i}, {"question", inputs[i].text}, {"context", *inputs[i].text_pair}});
  const corpus::QuestionSet questions =
      corpus::parse_questions(nlohmann::json{{"data", rows}}.dump(), "a.json");
  for (const int64_t positions : {512, 300}) {
    const data::QuestionDataset dataset(
        questions, tokenizer, {.max_length = std::min<int64_t>(positions, 384), .cache = cache_.path()});
    ASSERT_GT(dataset.size(), std::ssize(inputs));
    expect_same_features(trained(dataset), served(heads::question_answering, positions, inputs));
  }
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, Features, ::testing::Values("uncased.txt", "roberta", "gpt2", "unigram"),
                         [](const auto& info) { return info.param.substr(0, info.param.find('.')); });

}  // namespace
}  // namespace stretto::serve
