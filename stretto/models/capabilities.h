#pragma once

#include "stretto/models/text_model.h"

// The capabilities of a model: its own, or the default for a missing one. Valid for the lifetime of the
// model.
namespace stretto {

// The model's word reader; the default reads only tokens and their context.
WordReader word_reader_of(const TextModel& model);

// The model's sequence labeller. The default tags each token separately and computes the cross entropy of the
// tokens with a label (not -100).
const SequenceLabeller& labeller_of(const TextModel& model);

}  // namespace stretto
