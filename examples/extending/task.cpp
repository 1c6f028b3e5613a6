// A task that stretto does not have: which character follows which in the lines of a text file. Recipes name
// it by `task: character-bigrams` and set it by their section character_bigrams.
#include <cctype>

#include <stretto/stretto.h>

namespace characters {

using stretto::Batch;
using stretto::Tensor;

constexpr int64_t bytes = 256;

// The section character_bigrams of recipes.
struct Settings {
  bool lowercase = false;

  void fields(stretto::settings::Fields& field) {
    field("lowercase", lowercase, "read upper-case letters of ASCII as lower-case ones");
  }
  bool operator==(const Settings&) const = default;
};

// Each line is a sample: its bytes, and the next byte of each.
class Lines : public stretto::data::Dataset {
 public:
  Lines(const std::filesystem::path& file, const Settings& settings) {
    std::istringstream text(stretto::read_file(file));
    for (std::string line; std::getline(text, line);) {
      if (line.size() < 2) continue;
      if (settings.lowercase)
        for (char& c : line) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      lines_.push_back(line);
    }
    if (lines_.empty()) throw stretto::DataError("{}: no line has two characters", file.string());
  }
  int64_t size() const override { return std::ssize(lines_); }
  int32_t length_of(int64_t sample) const override {
    return static_cast<int32_t>(lines_[static_cast<size_t>(sample)].size()) - 1;
  }

  Batch pack(std::span<const int64_t> samples) const override {
    std::vector<int64_t> now, next;
    Batch batch;
    for (const int64_t sample : samples) {
      const std::string& line = lines_[static_cast<size_t>(sample)];
      for (size_t i = 0; i + 1 < line.size(); ++i) {
        now.push_back(static_cast<unsigned char>(line[i]));
        next.push_back(static_cast<unsigned char>(line[i + 1]));
      }
    }
    batch.sample_ids.assign(samples.begin(), samples.end());
    batch.count = std::ssize(samples);
    batch.tensors = {{"input_ids", at::tensor(now, at::kLong)}, {"labels", at::tensor(next, at::kLong)}};
    return batch;
  }

 private:
  std::vector<std::string> lines_;
};

class Bigrams : public stretto::Module {
 public:
  Bigrams() : scores_(model(std::make_shared<stretto::nn::Embedding>(bytes, bytes))) {
    at::NoGradGuard no_grad;
    scores_->weight.zero_();
  }
  // The mean over characters. The default validation_step logs it as loss.
  stretto::Loss training_step(const Batch& batch, stretto::StepContext& context) override {
    return stretto::nn::cross_entropy(scores_->forward(batch.at("input_ids")), batch.at("labels"),
                                      context.forward);
  }

 private:
  std::shared_ptr<stretto::nn::Embedding> scores_;
};

class CharacterBigrams : public stretto::Task {
 public:
  explicit CharacterBigrams(const stretto::TaskContext& context) : context_(context) {}

  stretto::FitResult train(const std::vector<std::shared_ptr<stretto::Callback>>& callbacks) override {
    const stretto::Recipe& recipe = context_.recipe;
    const auto& settings = recipe.task_settings.as<Settings>();
    Bigrams module;
    const Lines train(*recipe.data.train, settings);
    const Lines validation(*recipe.data.validation, settings);
    stretto::Trainer trainer(recipe, context_.mesh, context_.device);
    for (const auto& callback : callbacks) trainer.add(callback);
    return trainer.fit(module, train, &validation);
  }

  void test() override { throw stretto::ConfigError("the task character-bigrams has no test"); }

 private:
  const stretto::TaskContext context_;
};

stretto::TaskKind kind() {
  return {
      .name = "character-bigrams",
      .help = "which character follows which",
      .settings = stretto::settings::Settings(Settings{}),
      .default_monitor = [](const stretto::Recipe&) { return "loss"; },
      .check =
          [](const stretto::Recipe& recipe) {
            if (!recipe.data.validation)
              throw stretto::ConfigError("data.validation is required: a file with one text per line");
          },
      .make =
          [](const stretto::TaskContext& context) { return std::make_unique<CharacterBigrams>(context); }};
}

}  // namespace characters

int main(int argc, char** argv) {
  stretto::register_task(characters::kind());
  return stretto::run_program(argc, argv, [](const stretto::Run& run) {
    stretto::check_recipe(run.recipe, stretto::Verb::train);  // run_program has not required data
    return stretto::make_task({run.recipe, run.mesh, run.device, stretto::bundled_models()})->train({});
  });
}
