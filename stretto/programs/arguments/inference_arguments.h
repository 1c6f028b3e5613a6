#pragma once

#include <filesystem>
#include <string>

#include <CLI/CLI.hpp>

#include "stretto/base/enum_names.h"
#include "stretto/base/precision.h"
#include "stretto/config/choices.h"
#include "stretto/programs/arguments/checks.h"
#include "stretto/programs/arguments/input_arguments.h"

namespace stretto::arguments {

// The arguments of verbs that run a model folder on texts, which stretto-rank also parses.
struct InferenceArguments : InputArguments {
  explicit InferenceArguments(int64_t default_batch_size) : batch_size(default_batch_size) {}

  std::filesystem::path model;
  std::string precision = "fp32";
  std::string device = "auto";
  int64_t batch_size;
  bool allow_nonfinite = false;
};

// Adds --model and the options of the inputs.
inline void add_model_and_inputs(CLI::App& verb, InferenceArguments& arguments, const char* help_of_model,
                                 const char* help_of_text) {
  verb.add_option("--model", arguments.model, help_of_model)->required()->type_name("FOLDER");
  add_input_arguments(verb, arguments, help_of_text);
}

// Adds the options by which a model is loaded and batches are formed.
inline void add_inference_options(CLI::App& verb, InferenceArguments& arguments,
                                  const char* help_of_batch_size) {
  verb.add_option("--precision", arguments.precision, "Data type of the computation")
      ->check(CLI::IsMember(enum_names<Precision>()))
      ->type_name("NAME")
      ->capture_default_str();
  verb.add_option("--device", arguments.device, "auto: a GPU per rank if there are as many, else the CPU")
      ->check(CLI::IsMember(enum_names<DeviceChoice>()))
      ->type_name("NAME")
      ->capture_default_str();
  verb.add_option("--batch-size", arguments.batch_size, help_of_batch_size)
      ->check(whole_number_from(1, 4096))
      ->type_name("N")
      ->capture_default_str();
  verb.add_flag("--allow-nonfinite", arguments.allow_nonfinite,
                "Load a model even if its weights hold NaN or infinity");
}

}  // namespace stretto::arguments
