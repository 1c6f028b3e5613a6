// Tests a model and a task, each added by one class and one registry entry, and used through a recipe and a
// model folder like the bundled ones.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/message_support.h"
#include "stretto/base/temp_folder.h"
#include "stretto/comm/rank_threads.h"
#include "stretto/config/recipe.h"
#include "stretto/config/task_kind.h"
#include "stretto/model_config/config_json.h"
#include "stretto/nn/layers.h"
#include "stretto/serve/pipeline.h"
#include "stretto/settings/rule.h"
#include "stretto/tasks/task.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;

// Sums a score per class over the words of a text.
class BagOfWords : public TextModel {
 public:
  BagOfWords(const nlohmann::json& config, const std::string& source, const TextModelOptions& options)
      : labels_(options.labels.value_or(read_labels(config, source))) {
    ConfigJson(config, source).read("vocab_size", vocab_size_, 1, max_width);
    words_ = register_module("words", std::make_shared<nn::Embedding>(vocab_size_, std::ssize(labels_)));
  }

  Tensor forward(const Batch& batch, const nn::Context&) const override {
    const nn::PackedLayout layout(batch);
    const Tensor sequence = at::repeat_interleave(layout.cu_seqlens.diff());
    const Tensor scores = words_->forward(batch.at("input_ids"));
    return at::zeros({layout.batch, scores.size(1)}, scores.options()).index_add(0, sequence, scores);
  }

  nn::InitialValue initial_value(const nn::LayerParameter&) const override { return {}; }  // zero

  nlohmann::json config_json(const nlohmann::json& original) const override {
    nlohmann::json json = begin_config_json(original, "bag-of-words", "BagOfWordsForSequenceClassification");
    json["vocab_size"] = vocab_size_;
    write_labels(json, labels_);
    return json;
  }

  const std::vector<std::string>& labels() const override { return labels_; }
  TextLimits limits() const override { return {vocab_size_, 4096}; }

 private:
  std::vector<std::string> labels_;
  int64_t vocab_size_ = 0;
  std::shared_ptr<nn::Embedding> words_;
};

ModelRegistry models_with_bag_of_words() {
  ModelRegistry models = bundled_models();
  const auto make = [](const nlohmann::json& config, const std::string& source,
                       const TextModelOptions& options) -> std::shared_ptr<TextModel> {
    return std::make_shared<BagOfWords>(config, source, options);
  };
  models.add({.name = "bag-of-words", .heads = {{"SequenceClassification", {make, "words.weight"}}}});
  return models;
}

// Texts of two words, of which the first determines the label.
void write_reviews(const std::filesystem::path& folder) {
  std::string rows = "text\tlabel\n";
  for (int i = 0; i < 8; ++i) {
    for (const char* thing : {"film", "book", "song"}) {
      rows += fmt::format("good {}\tpositive\nbad {}\tnegative\n", thing, thing);
    }
  }
  write_file_atomic(folder / "reviews.tsv", rows);
  write_file_atomic(folder / "vocab.txt",
                    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ngood\nbad\nfilm\nbook\nsong\n");
  write_file_atomic(folder / "config.json", R"({"model_type": "bag-of-words", "vocab_size": 10})");
}

Recipe reviews_recipe(const std::filesystem::path& folder) {
  const Recipe recipe = parse_recipe(fmt::format(R"(
task: text-classification
model: {{config: {0}/config.json}}
tokenizer: {{path: {0}/vocab.txt}}
data: {{train: {0}/reviews.tsv, validation: {0}/reviews.tsv, test: {0}/reviews.tsv, max_length: 16}}
training: {{epochs: 3, global_batch_size: 8}}
optimizer: {{lr: 0.1}}
scheduler: {{type: Constant}}
track: {{progress: "off"}}
output: {0}/run
)",
                                                 folder.string()),
                                     "reviews.yaml");
  check_recipe(recipe, Verb::train);
  return recipe;
}

TEST(AddedModel, IsTrainedTestedAndServed) {
  const TempFolder folder;
  write_reviews(folder.path());
  const Recipe recipe = reviews_recipe(folder.path());
  const ModelRegistry models = models_with_bag_of_words();
  comm::run_rank_threads(2, [&](Group& group) {
    const Mesh mesh = make_mesh(recipe, group);
    const TaskContext context = {recipe, mesh, at::Device(at::kCPU), models};
    const FitResult result = make_task(context)->train({});
    EXPECT_EQ(result.best.value().at("accuracy"), 1);
  });
  comm::run_rank_threads(1, [&](Group& group) {
    const Mesh mesh = make_mesh(recipe, group);
    make_task({recipe, mesh, at::Device(at::kCPU), models})->test();
  });
  EXPECT_EQ(read_json(recipe.output / "test_results.json").at("accuracy"), 1);

  const std::filesystem::path model = recipe.output / "model";
  const nlohmann::json config = read_json(model / "config.json");
  EXPECT_EQ(config.at("model_type"), "bag-of-words");
  EXPECT_EQ(config.at("id2label").at("1"), "positive");
  const auto pipeline = load_pipeline(model, {}, models);
  const std::vector<PipelineInput> inputs = {{"good song"}, {"bad song"}};
  const auto records = pipeline->predict(inputs, "label");
  EXPECT_EQ(records[0].at("label"), "positive");
  EXPECT_EQ(records[1].at("label"), "negative");
}

TEST(AddedModel, MistakesInItsSectionHaveTheirPosition) {
  const TempFolder folder;
  write_reviews(folder.path());
  Recipe recipe = reviews_recipe(folder.path());
  const Recipe section = parse_recipe(
      "task: text-classification\nmodel:\n  config:\n    model_type: bag-of-words\n    vocab_size: ten\n",
      "bag.yaml");
  recipe.model = section.model;
  recipe.origins = section.origins;
  const ModelRegistry models = models_with_bag_of_words();
  comm::run_rank_threads(1, [&](Group& group) {
    const Mesh mesh = make_mesh(recipe, group);
    EXPECT_THAT(message_of<ConfigError>([&] {
                  make_task({recipe, mesh, at::Device(at::kCPU), models})->train({});
                }),
                HasSubstr("bag.yaml:5:17: model.config.vocab_size: found \"ten\"; expected an integer"));
  });
}

TEST(AddedModel, IsUnknownToAnotherRegistry) {
  const TempFolder folder;
  write_reviews(folder.path());
  const Recipe recipe = reviews_recipe(folder.path());
  comm::run_rank_threads(1, [&](Group& group) {
    const Mesh mesh = make_mesh(recipe, group);
    const TaskContext context = {recipe, mesh, at::Device(at::kCPU), bundled_models()};
    EXPECT_THAT(message_of<ConfigError>([&] { make_task(context)->train({}); }),
                has_all("config.json: model_type: \"bag-of-words\" is not a model_type",
                        "(known: bert, roberta, xlm-roberta, electra, distilbert, bart, gpt2, llama, "
                        "mistral, qwen2, qwen3, sequence-tagger)"));
  });
}

// A task that trains no model: it counts the lines of data.train, up to a limit in its settings.
struct LineCountingConfig {
  int64_t most = 1000;

  void fields(settings::Fields& field) { field("most", most, "lines to count", settings::at_least(1)); }
  bool operator==(const LineCountingConfig&) const = default;
};

class LineCounting : public Task {
 public:
  explicit LineCounting(const TaskContext& context) : recipe_(context.recipe) {}
  FitResult train(const std::vector<std::shared_ptr<Callback>>&) override {
    const std::string text = read_file(*recipe_.data.train);
    FitResult result;
    result.samples = std::min<int64_t>(std::ranges::count(text, '\n'),
                                       recipe_.task_settings.as<LineCountingConfig>().most);
    return result;
  }
  void test() override {}

 private:
  const Recipe& recipe_;
};

TaskKind line_counting() {
  return {.name = "line-counting",
          .help = "the number of lines",
          .settings = settings::Settings(LineCountingConfig{}),
          .default_monitor = [](const Recipe&) { return "lines"; },
          .check =
              [](const Recipe& recipe) {
                if (recipe.task_settings.as<LineCountingConfig>().most % 2 == 1)
                  throw ConfigError("{}: it is odd", recipe.origins.label("line_counting.most"));
              },
          .make = [](const TaskContext& context) { return std::make_unique<LineCounting>(context); }};
}

// Registers the task once per process, like a program at its start.
class AddedTask : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (task_kinds().find("line-counting") == nullptr) register_task(line_counting());
  }
  AddedTask() { write_reviews(folder_.path()); }

  Recipe read(const std::string& task, const std::string& section) const {
    return parse_recipe(
        fmt::format("task: {}\ndata: {{train: {}/reviews.tsv}}\nevaluate: {{every: never}}\n{}", task,
                    folder_.path().string(), section),
        "lines.yaml");
  }
  // The error of the recipe; fails if it is accepted.
  std::string refusal(const std::string& task, const std::string& section) const {
    try {
      check_recipe(read(task, section), Verb::train);
    } catch (const ConfigError& error) {
      return error.what();
    }
    ADD_FAILURE() << task << ": " << section;
    return "";
  }
  int64_t lines(const Recipe& recipe) const {
    int64_t lines = 0;
    comm::run_rank_threads(1, [&](Group& group) {
      const Mesh mesh = make_mesh(recipe, group);
      lines = make_task({recipe, mesh, at::Device(at::kCPU), bundled_models()})->train({}).samples;
    });
    return lines;
  }

  const TempFolder folder_;
};

TEST_F(AddedTask, IsNamedByARecipeAndReadsItsSection) {
  const Recipe recipe = read("line-counting", "line_counting: {most: 10}");
  check_recipe(recipe, Verb::train);
  EXPECT_EQ(lines(recipe), 10);
  EXPECT_EQ(lines(read("line-counting", "")), 49);
  EXPECT_EQ(decode_recipe(encode_recipe(recipe)), recipe);
  EXPECT_TRUE(computing_settings(recipe).contains("line_counting.most"));
  EXPECT_THAT(recipe_help_on("line_counting"), HasSubstr("lines to count"));
}

TEST_F(AddedTask, HasItsOwnMonitor) {
  const Recipe recipe = parse_recipe("task: line-counting\ndata: {train: x, validation: x}\n", "lines.yaml");
  EXPECT_EQ(recipe.checkpoint.monitor, "lines");
}

TEST_F(AddedTask, IsRefusedIfItDividesNoModels) {
  EXPECT_THAT(refusal("line-counting", "training: {mesh: {tp: 2}}"),
              has_all("is line-counting", "cannot be divided among ranks", "unlike those of"));
}

TEST_F(AddedTask, HasItsSettingsChecked) {
  EXPECT_THAT(refusal("line-counting", "line_counting: {most: 9}"),
              HasSubstr("lines.yaml:4:23: line_counting.most: it is odd"));
  EXPECT_THAT(refusal("line-counting", "line_counting: {most: 0}"), HasSubstr("must be at least 1"));
  EXPECT_THAT(refusal("text-classification", "line_counting: {most: 10}"),
              HasSubstr("line_counting does not apply with task: text-classification"));
  EXPECT_THAT(refusal("line-counting", "question_answering: {doc_stride: 8}"),
              HasSubstr("question_answering does not apply with task: line-counting"));
  EXPECT_THAT(refusal("line-countin", ""), HasSubstr("did you mean \"line-counting\"?"));
}

TEST_F(AddedTask, RefusesTakenNamesAndIncompleteTasks) {
  const auto refuses = [](const TaskKind& kind, const auto&... named) {
    EXPECT_THAT(message_of<ConfigError>([&] { register_task(kind); }), has_all(named...));
  };
  refuses(line_counting(), "\"line-counting\" is registered twice");
  TaskKind kind = line_counting();
  kind.name = "training";
  refuses(kind, "the task \"training\"", "a section \"training\"", "a setting of that name");
  EXPECT_EQ(task_kinds().find("training"), nullptr);
  refuses({.name = "nothing", .help = "no task"}, "\"nothing\"", "without a function that makes it");
  EXPECT_EQ(task_kinds().find("nothing"), nullptr);
}

TEST(Tasks, MakesEveryTaskThatARecipeMayName) {
  const TempFolder folder;
  write_reviews(folder.path());
  Recipe recipe = reviews_recipe(folder.path());
  comm::run_rank_threads(1, [&](Group& group) {
    const Mesh mesh = make_mesh(recipe, group);
    for (const TaskKind& kind : task_kinds().entries()) {
      recipe.task = kind.name;
      EXPECT_NE(make_task({recipe, mesh, at::Device(at::kCPU), bundled_models()}), nullptr) << kind.name;
    }
    recipe.task = "line-countin";
    EXPECT_THROW(make_task({recipe, mesh, at::Device(at::kCPU), bundled_models()}), ConfigError);
  });
}

}  // namespace
}  // namespace stretto
