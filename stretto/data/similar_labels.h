#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "stretto/corpus/tagged.h"
#include "stretto/data/rows.h"

namespace stretto::data {

struct LabelUse {
  int64_t count = 0;  // rows, or words
  int64_t line = 0;   // line of the first row, or of the sentence with the first word
};

// The use of each label in a file. Empty for numbers and files without labels.
std::map<std::string, LabelUse> label_uses(const Table& table);
std::map<std::string, LabelUse> label_uses(const corpus::TaggedCorpus& corpus);

// A warning, with file and line, about two labels that differ only in case or blanks and are thus most likely
// one label, and the number of further such pairs. "" if there are none.
std::string describe_similar_labels(const std::string& file, const std::map<std::string, LabelUse>& uses);

}  // namespace stretto::data
