#pragma once

#include <cstdint>
#include <string>

#include "stretto/base/option_names.h"
#include "stretto/data/rows.h"
#include "stretto/data/sample_lengths.h"

namespace stretto::data {

// A one-line summary of a file: rows, columns, and the classes with their counts.
//   "67349 texts; sentence, label (named columns); 2 classes: 0 29780 (44.2 %), 1 37569 (55.8 %)"
std::string describe_table(const Table& table);

// The lengths of encoded texts: "11 tokens (median), 31 (95 %), 66 (longest); 0.3 % are cut at max_length
// 66". A text of max_length tokens counts as cut. "no texts" if there are none.
std::string describe_lengths(const SampleLengths& lengths, int64_t max_length, const OptionNames& names = {});

}  // namespace stretto::data
