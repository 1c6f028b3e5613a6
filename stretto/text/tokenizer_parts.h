#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stretto/text/added_tokens.h"
#include "stretto/text/decoder.h"
#include "stretto/text/model.h"
#include "stretto/text/normalizer.h"
#include "stretto/text/post_processor.h"
#include "stretto/text/pre_tokenizer.h"
#include "stretto/text/tokenizer.h"

namespace stretto::text {

// The parts of a tokenizer, parsed from its files.
struct TokenizerParts {
  std::string name;  // the file, for messages
  std::unique_ptr<Normalizer> normalizer = std::make_unique<NoNormalizer>();
  std::unique_ptr<PreTokenizer> pre_tokenizer;
  std::unique_ptr<Model> model;
  std::vector<AddedToken> added_tokens;
  PostProcessor post_processor;
  Decoder decoder;
  Side truncation_side = Side::right;
  SavedLengths saved_lengths;
  std::string eos_token = "";  // the token that ends a document; "": the files name none
  std::string hugging_face_class = "PreTrainedTokenizerFast";
};

}  // namespace stretto::text
