#pragma once

#include "stretto/models/text_model.h"

// Capabilities of any model: its own, or what stands for a missing one. Valid as long as the model.
namespace stretto {

// What the model reads of words; most models read tokens and their context only.
WordReader word_reader_of(const TextModel& model);

// What tags tokens: most models tag each by itself, with the losses of tokens with a label (not -100).
const SequenceLabeller& labeller_of(const TextModel& model);

}  // namespace stretto
