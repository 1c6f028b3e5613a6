#pragma once

#include <span>

namespace stretto::text {

struct CodePointRange {
  char32_t first;
  char32_t last;
};

// Sorted, disjoint ranges. Written by scripts/make_golden_tokenizer.py tables.
extern const std::span<const CodePointRange> control_ranges;
extern const std::span<const CodePointRange> punctuation_ranges;
extern const std::span<const CodePointRange> nonspacing_mark_ranges;
// Characters with a nonzero combining class in Unicode 9.0.
extern const std::span<const CodePointRange> reordered_ranges;
// M* of Unicode 9.0.
extern const std::span<const CodePointRange> combining_mark_ranges;
// \p{L} and \p{N} of the regular expressions.
extern const std::span<const CodePointRange> letter_ranges;
extern const std::span<const CodePointRange> number_ranges;

}  // namespace stretto::text
