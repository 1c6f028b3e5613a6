#pragma once

#include <CLI/CLI.hpp>

#include "stretto/base/enum_names.h"
#include "stretto/base/precision.h"
#include "stretto/programs/arguments/checks.h"

namespace stretto::arguments {

// Adds the options by which `predict` and `generate` load a model and form batches, as members of
// `arguments`.
template <class Arguments>
void add_inference_options(CLI::App& verb, Arguments& arguments, const char* help_of_batch_size) {
  verb.add_option("--precision", arguments.precision, "Data type of the computation")
      ->check(CLI::IsMember(enum_names<Precision>()))
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
