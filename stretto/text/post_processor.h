#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "stretto/text/encoding.h"

namespace stretto::text {

// The tokens of one text before a template is applied.
struct Sequence {
  std::vector<int32_t> ids;
  std::vector<Offset> offsets;
  std::vector<int32_t> word_ids;

  // White space that is part of the match of an added token (lstrip, rstrip), by the index of the token, in
  // order.
  struct TakenSpace {
    size_t index;
    size_t leading;  // code points
    size_t trailing;
  };
  std::vector<TakenSpace> taken_spaces = {};

  size_t size() const { return ids.size(); }
  void push_back(int32_t id, Offset offset, int32_t word_id);

  // Appends an added token; `match` is the matched text.
  void push_back_added(int32_t id, Offset offset, int32_t word_id, std::string_view match);
};

// A part of a template, which defines the tokens around and between the texts: Hugging Face's
// TemplateProcessing (BertProcessing is one such template).
struct TemplatePiece {
  enum class Kind { first, second, special };
  Kind kind;
  int32_t type_id = 0;
  std::vector<int32_t> ids = {};  // of a special piece
};

struct Template {
  std::vector<TemplatePiece> single = {{TemplatePiece::Kind::first}};
  std::vector<TemplatePiece> pair = {{TemplatePiece::Kind::first}, {TemplatePiece::Kind::second, 1}};
};

// [CLS] first [SEP] second [SEP]
Template bert_template(int32_t cls_id, int32_t sep_id);

// <s> first </s> </s> second </s>, all of type 0
Template roberta_template(int32_t cls_id, int32_t sep_id);

// Excludes white space at the ends of byte-level tokens from their offsets (trim_offsets).
struct OffsetTrimming {
  bool trim = false;
  bool add_prefix_space = true;  // the first space of a first token is not part of the text
};

// The processing after words have been converted to tokens: tokenizer.json's `post_processor`.
struct PostProcessor {
  Template pieces;
  OffsetTrimming offsets;
};

// The content of a token.
using TokenOfId = std::function<std::string_view(int32_t)>;

// Truncates the texts and applies the template. `second` is null for a single text. The first encoding is the
// truncated one; with `all_windows` those of the overflowing tokens follow (see plan_windows). `token_of` is
// for trimming offsets. `side` is the default if the options have none. Throws ConfigError if the special
// tokens alone exceed max_length, and the exceptions of plan_windows.
std::vector<Encoding> post_process(const PostProcessor& processor, const TokenOfId& token_of,
                                   const Sequence& first, const Sequence* second,
                                   const EncodeOptions& options, Side side, bool all_windows);

}  // namespace stretto::text
