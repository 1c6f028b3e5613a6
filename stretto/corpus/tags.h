#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/option_names.h"

namespace stretto::corpus {

// A typed span of a sentence: words [begin, end).
struct Span {
  size_t begin = 0;
  size_t end = 0;
  std::string type;

  auto operator<=>(const Span&) const = default;
};

// The scheme by which tags such as "B-PER" mark spans (Ramshaw and Marcus 1995; Tjong Kim Sang and Veenstra
// 1999):
//   IOB1   I- inside; B- only for a span directly after another one of the same type
//   IOB2   B- for the first word of each span (also called BIO)
//   IOE1, IOE2   the same with E- for last words
//   IOBES  B- first, I- inside, E- last, S- single word (also called BIOES)
//   BILOU  the same with L- for last and U- for single words
enum class TagScheme { iob1, iob2, ioe1, ioe2, iobes, bilou };

// The scheme with one of these names, in any case, or BIO, BIOES. Throws ConfigError for another name.
TagScheme parse_tag_scheme(std::string_view name, const OptionNames& names = {});
std::string_view name_of(TagScheme scheme);

// The spans of any sequence of tags, valid or not, by the rules of conlleval and of seqeval's default mode: a
// span begins at B or S, and where the type changes or the previous word is outside; it ends after E or S,
// before the next one, and at O. Correct for IOB1, IOB2 and IOBES. A tag without a type ("B") has the type
// "_".
std::vector<Span> lenient_spans(std::span<const std::string> tags);

// Only the spans that are well-formed in `scheme`, as in seqeval's strict mode. Throws DataError for a tag
// whose prefix the scheme does not have.
std::vector<Span> strict_spans(std::span<const std::string> tags, TagScheme scheme);

// Detects the scheme of all `sentences` by the prefixes that occur, like seqeval: IOB2, IOE2, IOBES or BILOU.
// Throws DataError if no scheme has exactly these prefixes.
TagScheme detect_tag_scheme(std::span<const std::vector<std::string>> sentences);

// The tags of `length` words in `scheme`: `spans`, which must not overlap, and O elsewhere.
std::vector<std::string> write_tags(std::span<const Span> spans, size_t length, TagScheme scheme);

// The type of a tag in seqeval's sense, that is, after its first character and the dash: "PER" for "B-PER",
// "A-B" for "I-A-B", "_" for "B" and "O", "X" for "ÉX".
std::string_view type_of_tag(std::string_view tag);

}  // namespace stretto::corpus
