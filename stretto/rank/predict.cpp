#include <iostream>

#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/rank/verbs.h"
#include "stretto/serve/text_classifier.h"

namespace stretto::rank {
namespace {

nlohmann::ordered_json describe(const std::string& text, const Tensor& logits, const BertConfig& config,
                                const std::string& output) {
  nlohmann::ordered_json record = {{"text", text}};
  const Tensor scores = at::softmax(logits, 0);
  if (output == "logits") {
    record["logits"] =
        std::vector<double>(logits.data_ptr<double>(), logits.data_ptr<double>() + logits.numel());
  } else if (output == "scores") {
    for (const auto& [id, label] : config.id2label) record["scores"][label] = scores[id].item<double>();
  } else {
    const auto best = scores.argmax().item<int64_t>();
    record["label"] = config.id2label.at(best);
    record["score"] = scores[best].item<double>();
  }
  return record;
}

void print(const std::vector<std::string>& texts, const TextClassifier& classifier,
           const std::string& output) {
  const Tensor logits = classifier.logits(texts).to(at::kDouble).contiguous();
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto record =
        describe(texts[i], logits[static_cast<int64_t>(i)].contiguous(), classifier.config(), output);
    std::cout << record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  }
  std::cout.flush();
  if (!std::cout) throw IoError("the predictions could not be written to standard output");
}

}  // namespace

void predict(const command::PredictArguments& arguments) {
  const TextClassifier classifier(arguments.model, arguments.precision == "fp64" ? at::kDouble : at::kFloat);
  std::vector<std::string> waiting;
  const auto flush = [&] {
    if (!waiting.empty()) print(waiting, classifier, arguments.output);
    waiting.clear();
  };
  const auto add = [&](std::string text) {
    waiting.push_back(std::move(text));
    if (std::ssize(waiting) == arguments.batch_size) flush();
  };
  for (const std::string& text : arguments.texts) add(text);
  if (arguments.texts.empty()) {
    for (std::string line; std::getline(std::cin, line);) add(line);
  }
  flush();
}

}  // namespace stretto::rank
