// A task that stretto does not have: predicts how many stars the writers of reviews gave. The classes of a
// classifier have no order; here the loss is the squared error of the expected number of stars. Recipes
// select the task by `task: star-ratings` and configure it in their section star_ratings.
#include <fstream>

#include <stretto/stretto.h>

namespace stars {

using stretto::Batch;
using stretto::Tensor;

// The section star_ratings of recipes.
struct Settings {
  int64_t most = 5;

  void fields(stretto::settings::Fields& field) {
    field("most", most, "stars of the best review; the worst has one",
          stretto::settings::at_least(2).at_most(100));
  }
  bool operator==(const Settings&) const = default;
};

// A file with a review per line: its stars, a tab, its text.
struct Reviews {
  std::string name;
  std::string content;
  std::vector<std::string> texts;
  std::vector<double> stars;
};

Reviews read_reviews(const std::filesystem::path& file, int64_t most) {
  Reviews reviews = {.name = file.string(), .content = stretto::read_file(file), .texts = {}, .stars = {}};
  std::istringstream lines(reviews.content);
  for (std::string line; std::getline(lines, line);) {
    const size_t tab = line.find('\t');
    const int64_t stars = std::atoll(line.c_str());
    if (tab == std::string::npos || stars < 1 || stars > most)
      throw stretto::DataError("{}:{}: expected 1 to {} stars, a tab and a text", reviews.name,
                               reviews.texts.size() + 1, most);
    reviews.stars.push_back(static_cast<double>(stars));
    reviews.texts.push_back(line.substr(tab + 1));
  }
  if (reviews.texts.empty()) throw stretto::DataError("{}: there is no review", reviews.name);
  return reviews;
}

// The tokens and stars of reviews.
class RatedTexts : public stretto::data::Dataset {
 public:
  RatedTexts(const Reviews& reviews, const stretto::text::Tokenizer& tokenizer, int64_t max_length)
      : stars_(reviews.stars) {
    for (const std::string& text : reviews.texts)
      encodings_.push_back(tokenizer.encode(text, {.max_length = static_cast<size_t>(max_length)}));
  }
  int64_t size() const override { return std::ssize(stars_); }
  int32_t length_of(int64_t review) const override {
    return static_cast<int32_t>(encodings_[static_cast<size_t>(review)].size());
  }
  Batch pack(std::span<const int64_t> reviews) const override {
    std::vector<stretto::data::TokenSequence> sequences;
    std::vector<double> stars;
    for (const int64_t review : reviews) {
      const auto i = static_cast<size_t>(review);
      sequences.push_back({encodings_[i].ids, encodings_[i].type_ids, review});
      stars.push_back(stars_[i]);
    }
    Batch batch = stretto::data::pack_sequences(sequences);
    if (batch.count > 0) batch.tensors["stars"] = at::tensor(stars, at::kDouble);
    return batch;
  }

 private:
  std::vector<double> stars_;
  std::vector<stretto::text::Encoding> encodings_;
};

// A model with a classification head, one class per number of stars.
class StarRating : public stretto::ModelModule {
 public:
  StarRating(const stretto::ModelConfig& model, const std::vector<std::string>& labels, uint64_t seed,
             const stretto::ModelRegistry& models)
      : ModelModule(model, "SequenceClassification", labels, seed, models) {}

  stretto::Loss training_step(const Batch& batch, stretto::StepContext& context) override {
    const Tensor expected = expected_stars(batch, context);
    return {(expected - batch.at("stars").to(expected.scalar_type())).square().sum(), batch.count};
  }

  // A row per review: the expected and the actual number of stars.
  stretto::Predictions validation_step(const Batch& batch, stretto::StepContext& context) override {
    return at::stack({expected_stars(batch, context).to(at::kDouble), batch.at("stars")}, 1);
  }
  stretto::Metrics metrics(const stretto::Predictions& predictions) const override {
    const Tensor error = predictions.rows.select(1, 0) - predictions.rows.select(1, 1);
    return {{"loss", error.square().mean().item<double>()}, {"error", error.abs().mean().item<double>()}};
  }

 private:
  Tensor expected_stars(const Batch& batch, const stretto::StepContext& context) const {
    const Tensor logits = net().forward(batch, context.forward);
    return at::softmax(logits, 1).matmul(at::arange(1, logits.size(1) + 1, logits.options()));
  }
};

class StarRatings : public stretto::FineTuning<Reviews, RatedTexts, StarRating> {
 public:
  explicit StarRatings(const stretto::TaskContext& context)
      : FineTuning(
            context,
            {.head = "classification", .unlabelled = "has no stars", .predictions = "predictions.tsv"}),
        most_(recipe_.task_settings.as<Settings>().most) {}

 private:
  TrainingFiles read_for_training() override {
    TrainingFiles files = {.train = read_reviews(*recipe_.data.train, most_)};
    if (recipe_.data.validation) files.validation = read_reviews(*recipe_.data.validation, most_);
    for (int64_t stars = 1; stars <= most_; ++stars) files.labels.push_back(std::to_string(stars));
    return files;
  }
  Reviews read_for_test(const std::vector<std::string>& labels) override {
    return read_reviews(*recipe_.data.test, std::ssize(labels));
  }
  bool has_labels(const Reviews&) const override { return true; }
  std::string content_hash(const Reviews& reviews) const override {
    return std::to_string(std::hash<std::string>()(reviews.content));
  }

  std::unique_ptr<StarRating> make_module(const ModuleArguments& arguments) override {
    return std::make_unique<StarRating>(arguments.model, arguments.labels, arguments.seed, models_);
  }
  std::unique_ptr<RatedTexts> tokenize(const Reviews& reviews, const stretto::TextModel&,
                                       const stretto::text::Tokenizer& tokenizer, bool) const override {
    return std::make_unique<RatedTexts>(reviews, tokenizer, recipe_.data.max_length);
  }
  void describe(const Reviews& reviews, const RatedTexts& dataset) const override {
    stretto::log::info("data       {}: {} reviews", reviews.name, dataset.size());
  }

  // Called on rank 0 only.
  stretto::TestResults write_results(const Reviews& reviews, const StarRating&,
                                     const stretto::Predictions& predictions,
                                     const stretto::Metrics& metrics) const override {
    const Tensor& rows = predictions.rows;
    std::ofstream file(recipe_.output / "predictions.tsv");
    for (int64_t i = 0; i < rows.size(0); ++i)
      file << rows[i][0].item<double>() << '\t' << reviews.texts[static_cast<size_t>(i)] << '\n';
    return {.record = metrics};
  }

  const int64_t most_;
};

stretto::TaskKind kind() {
  return {.name = "star-ratings",
          .help = "the stars of reviews",
          .settings = stretto::settings::Settings(Settings{}),
          .head = "SequenceClassification",
          .default_monitor = [](const stretto::Recipe&) { return "loss"; },
          .check =
              [](const stretto::Recipe& recipe) {
                if (recipe.data.text_pair)
                  throw stretto::ConfigError("{}: a review is one text; remove this",
                                             recipe.origins.label("data.text_pair"));
              },
          .make = [](const stretto::TaskContext& context) { return std::make_unique<StarRatings>(context); }};
}

}  // namespace stars

int main(int argc, char** argv) {
  stretto::register_task(stars::kind());
  return stretto::run_program(argc, argv, [](const stretto::Run& run) {
    stretto::check_recipe(run.recipe, stretto::Verb::train);  // run_program has not required model and data
    const auto task = stretto::make_task({run.recipe, run.mesh, run.device, stretto::bundled_models()});
    const stretto::FitResult result = task->train({});
    if (!result.stopped && run.recipe.data.test) task->test();
    return result;
  });
}
