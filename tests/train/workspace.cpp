#include "tests/train/workspace.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include <gtest/gtest.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/strings.h"

namespace stretto {
namespace {

constexpr const char* good_words[] = {"good", "fine", "bright", "lively", "warm", "witty"};
constexpr const char* bad_words[] = {"bad", "dull", "bleak", "stale", "cold", "clumsy"};
constexpr const char* other_words[] = {"the", "film", "a",  "story", "is",  "was",  "and", "with",
                                       "its", "plot", "of", "scene", "end", "cast", ".",   ","};

std::string vocabulary() {
  std::string text = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (const char* word : good_words) text += std::string(word) + "\n";
  for (const char* word : bad_words) text += std::string(word) + "\n";
  for (const char* word : other_words) text += std::string(word) + "\n";
  return text;
}

nlohmann::json model_config() {
  return {{"model_type", "bert"},
          {"vocab_size", split(trim(vocabulary()), '\n').size()},
          {"hidden_size", 32},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"intermediate_size", 48},
          {"max_position_embeddings", 32},
          {"hidden_dropout_prob", 0.1},
          {"attention_probs_dropout_prob", 0.1}};
}

std::string recipe(const std::string& folder) {
  return fmt::format(R"(model:
  config: {0}model/config.json
tokenizer:
  path: {0}model
data:
  train: {0}train.tsv
  validation: {0}dev.tsv
  max_length: 24
  cache: {0}cache
training:
  epochs: 2
  global_batch_size: 16
  precision: fp64
  device: cpu
  seed: 7
optimizer:
  lr: 0.001
scheduler:
  warmup_ratio: 0.1
evaluate:
  batch_size: 8
track:
  log_every: 1
  progress: line
output: {0}run
)",
                     folder);
}

}  // namespace

std::string make_rows(int count, uint64_t seed) {
  // unlike the standard distributions, it is the same with every standard library
  std::mt19937_64 random(seed);
  const auto pick = [&](const auto& words) { return words[random() % std::size(words)]; };
  std::string rows = "sentence\tlabel\n";
  for (int row = 0; row < count; ++row) {
    const int label = row % 2;
    std::string text;
    for (uint64_t word = 0, words = 2 + random() % 12; word < words; ++word)
      text += std::string(pick(other_words)) + " ";
    for (uint64_t word = 0, words = 1 + random() % 3; word < words; ++word) {
      text += std::string(label == 1 ? pick(good_words) : pick(bad_words)) + " ";
    }
    rows += fmt::format("{}.\t{}\n", text, label);
  }
  return rows;
}

Workspace::Workspace() {
  make_folders(path("model"));
  write("model/config.json", model_config().dump(2));
  write("model/vocab.txt", vocabulary());
  write("train.tsv", make_rows(64, 1));
  write("dev.tsv", make_rows(23, 2));
  write("recipe.yaml", recipe(path()));
}

// Atomic for runs that read the file; without fsync, on which tests that run at the same time wait.
void Workspace::write(const std::string& name, const std::string& content) const {
  std::ofstream(path(name + ".new"), std::ios::binary) << content;
  std::filesystem::rename(path(name + ".new"), path(name));
}

std::string Workspace::read(const std::string& name) const { return read_file(path(name)); }
bool Workspace::has(const std::string& name) const { return std::filesystem::exists(path(name)); }

std::string Workspace::command(const std::string& verb, int ranks, const std::string& settings) const {
  // Tests run concurrently, so ranks are not pinned and use one thread each.
  std::string text = fmt::format("OMP_NUM_THREADS=1 exec {} {} {} --no-pin -N {}", STRETTO_PROGRAM, verb,
                                 path("recipe.yaml"), ranks);
  for (const std::string_view setting : split(settings, ' ')) {
    if (!setting.empty()) text += fmt::format(" --set {}", setting);
  }
  return text;
}

ShellResult Workspace::run(const std::string& verb, int ranks, const std::string& settings) const {
  return shell(command(verb, ranks, settings));
}

void Workspace::train(const std::string& name, int ranks, const std::string& settings) const {
  const ShellResult result = run("train", ranks, fmt::format("{} output={}", settings, path(name)));
  ASSERT_EQ(result.exit_code, 0) << name << ":\n" << result.err;
}

std::vector<nlohmann::json> Workspace::metrics(const std::string& run) const {
  return read_json_lines(read(run + "/metrics.jsonl"));
}

std::vector<double> Workspace::losses(const std::string& run) const {
  std::vector<double> losses;
  for (const nlohmann::json& record : metrics(run)) {
    if (record.contains("loss")) losses.push_back(record["loss"].get<double>());
  }
  return losses;
}

int64_t Workspace::recorded_lines(const std::string& run) const {
  const std::string file = run + "/metrics.jsonl";
  if (!has(file)) return 0;
  const std::string text = read(file);
  return std::count(text.begin(), text.end(), '\n');
}

std::vector<nlohmann::json> read_json_lines(const std::string& text) {
  std::vector<nlohmann::json> records;
  for (const std::string_view line : split(text, '\n')) {
    if (!line.empty()) records.push_back(nlohmann::json::parse(line));
  }
  return records;
}

// Implemented from the format's specification, independently of stretto's reader.
Weights read_weights(const std::filesystem::path& file) {
  const std::string bytes = read_file(file);
  uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), sizeof header_size);
  const char* data = bytes.data() + sizeof header_size + header_size;
  const auto header = nlohmann::json::parse(bytes.substr(sizeof header_size, header_size));
  Weights weights;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    const bool wide = tensor["dtype"] == "F64";
    if (!wide && tensor["dtype"] != "F32") continue;
    const size_t begin = tensor["data_offsets"][0], end = tensor["data_offsets"][1];
    for (size_t at = begin; at < end; at += wide ? sizeof(double) : sizeof(float)) {
      double value;
      float narrow;
      std::memcpy(&value, data + at, wide ? sizeof value : 0);
      std::memcpy(&narrow, data + at, sizeof narrow);
      weights[name].push_back(wide ? value : narrow);
    }
  }
  return weights;
}

double relative_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]) / std::max(std::abs(a[i]), std::abs(b[i]));
    if (!(difference <= largest)) largest = difference;  // NaN too
  }
  return largest;
}

double weight_difference(const Weights& a, const Weights& b, double floor) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (const auto& [name, values] : a) {
    const auto other = b.find(name);
    if (other == b.end() || other->second.size() != values.size()) return INFINITY;
    double largest = floor, difference = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(values[i]));
      difference = std::max(difference, std::abs(values[i] - other->second[i]));
    }
    worst = std::max(worst, difference / largest);
  }
  return worst;
}

void expect_same_steps(const Workspace& workspace, const std::string& a, const std::string& b) {
  constexpr double rounding = 1e-9;
  const auto weights = [&](const std::string& run) {
    return read_weights(workspace.path(run + "/model/model.safetensors"));
  };
  EXPECT_LT(relative_difference(workspace.losses(a), workspace.losses(b)), rounding) << a << " and " << b;
  EXPECT_LT(weight_difference(weights(a), weights(b)), rounding) << a << " and " << b;
}

}  // namespace stretto
