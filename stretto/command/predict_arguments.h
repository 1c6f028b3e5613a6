#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "stretto/command/checks.h"

namespace stretto::command {

// The arguments of `stretto predict`, which stretto-rank parses too.
struct PredictArguments {
  std::filesystem::path model;
  std::vector<std::string> texts;  // empty: lines of standard input
  std::string output = "label";
  std::string aggregation_strategy = "simple";
  int top_k = 1;
  std::string precision = "fp32";
  int batch_size = 32;
  bool allow_nonfinite = false;
};

inline void add_predict_arguments(CLI::App& verb, PredictArguments& arguments) {
  verb.add_option("--model", arguments.model, "A model folder, such as RUN/model")
      ->required()
      ->type_name("FOLDER");
  verb.add_option(
          "--text", arguments.texts,
          "A text; may be repeated (default: one per line of standard input). For text pairs, and for a question and its context: both separated by a tab")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  verb.add_option(
          "--output", arguments.output,
          "label: the best class and its probability, the entities, or the answer; scores: all probabilities; logits: raw scores")
      ->check(CLI::IsMember({"label", "scores", "logits"}))
      ->capture_default_str();
  verb.add_option("--aggregation-strategy", arguments.aggregation_strategy,
                  "Of token classification: how tokens become entities, as in Hugging Face's pipeline")
      ->check(CLI::IsMember({"none", "simple", "first", "average", "max"}))
      ->capture_default_str();
  verb.add_option("--top-k", arguments.top_k, "Of question answering: answers per question")
      ->check(whole_number_from(1, 1000))
      ->capture_default_str();
  verb.add_option("--precision", arguments.precision, "Data type of the computation")
      ->check(CLI::IsMember({"fp32", "bf16", "fp64"}))
      ->capture_default_str();
  verb.add_option("--batch-size", arguments.batch_size, "Texts per batch")
      ->check(whole_number_from(1, 4096))
      ->capture_default_str();
  verb.add_flag("--allow-nonfinite", arguments.allow_nonfinite,
                "Load a model even if its weights hold NaN or infinity");
}

}  // namespace stretto::command
