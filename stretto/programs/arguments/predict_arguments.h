#pragma once

#include <filesystem>
#include <string>

#include "stretto/base/enum_names.h"
#include "stretto/base/precision.h"
#include "stretto/programs/arguments/checks.h"
#include "stretto/programs/arguments/inference_options.h"
#include "stretto/programs/arguments/input_arguments.h"

namespace stretto::arguments {

// The arguments of `stretto predict`, which stretto-rank also parses. The defaults of empty ones depend on
// the task.
struct PredictArguments : InputArguments {
  std::filesystem::path model;
  bool split_into_words = false;
  std::string output = "label";
  std::string aggregation_strategy;
  std::string top_k;
  bool handle_impossible_answer = false;
  std::string precision = "fp32";
  int batch_size = 32;
  bool allow_nonfinite = false;
};

inline void add_predict_arguments(CLI::App& verb, PredictArguments& arguments) {
  verb.add_option("--model", arguments.model, "A model folder, such as RUN/model")
      ->required()
      ->type_name("FOLDER");
  add_input_arguments(
      verb, arguments,
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
