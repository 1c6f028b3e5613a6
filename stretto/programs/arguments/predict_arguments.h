#pragma once

#include <string>

#include "stretto/programs/arguments/inference_arguments.h"

namespace stretto::arguments {

// The arguments of `stretto predict`. The defaults of empty ones depend on the task.
struct PredictArguments : InferenceArguments {
  PredictArguments() : InferenceArguments(32) {}

  bool split_into_words = false;
  std::string output = "label";
  std::string aggregation_strategy;
  std::string top_k;
  bool handle_impossible_answer = false;
};

inline void add_predict_arguments(CLI::App& verb, PredictArguments& arguments) {
  add_model_and_inputs(
      verb, arguments, "A model folder, such as RUN/model",
      "A text, in place of --input; may be repeated. Two texts of a pair, and a question and its context, "
      "are separated by a tab");
  verb.add_flag("--split-into-words", arguments.split_into_words,
                "Token classification: the words are given, separated by white space or as a JSON list");
  verb.add_option(
          "--output", arguments.output,
          "label: the best class and its score, the entities, or the answer; pipeline: the same without the "
          "text, as Hugging Face's pipelines return it; scores: all probabilities; logits: raw scores")
      ->check(CLI::IsMember({"label", "pipeline", "scores", "logits"}))
      ->type_name("NAME")
      ->capture_default_str();
  verb.add_option(
          "--top-k", arguments.top_k,
          "Text classification: a list of the K best classes, or \"all\"; question answering: of the K best "
          "answers (default: the best one, without a list)")
      ->check([](const std::string& text) -> std::string {
        if (text == "all" || whole_number_from(1, 1000)(text).empty()) return "";
        return "\"" + text + "\" is not a whole number from 1 to 1000, or all";
      })
      ->type_name("K");
  verb.add_flag("--handle-impossible-answer", arguments.handle_impossible_answer,
                "Question answering: the answer may be \"\", that the context has none");
  verb.add_option(
          "--aggregation-strategy", arguments.aggregation_strategy,
          "Token classification: how tokens become entities, as in Hugging Face's pipeline (default: simple)")
      ->check(CLI::IsMember({"none", "simple", "first", "average", "max"}))
      ->type_name("NAME");
  add_inference_options(verb, arguments, "Inputs per batch");
}

}  // namespace stretto::arguments
