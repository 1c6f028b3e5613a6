#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "stretto/corpus/tagged.h"
#include "stretto/data/rows.h"

namespace stretto::data {

struct LabelUse {
  int64_t count = 0;  // rows, or words
  int64_t line = 0;   // of the first row, or of the sentence with the first word
};

// How a file uses each of its labels. Empty for numbers and files without labels.
std::map<std::string, LabelUse> label_uses(const Table& table);
std::map<std::string, LabelUse> label_uses(const corpus::TaggedCorpus& corpus);

// A warning, by file and line, of two labels that differ in case or blanks only, which are most likely one label in
// two spellings; with the number of further ones. "" if there are none.
std::string describe_similar_labels(const std::string& file, const std::map<std::string, LabelUse>& uses);

}  // namespace stretto::data
