#pragma once

#include "stretto/models/text_model.h"

// Capabilities of any model: its own, or the default for a missing one. Valid as long as the model.
namespace stretto {

// The model's word reader; most models read tokens and their context only.
WordReader word_reader_of(const TextModel& model);

// The model's labeller; most models tag each token separately, with the losses of tokens with a label (not
// -100).
const SequenceLabeller& labeller_of(const TextModel& model);

}  // namespace stretto
