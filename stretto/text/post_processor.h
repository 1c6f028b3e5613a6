#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace stretto::text {

// Code points [begin, end) of the text that a token stands for, as Hugging Face's Python API counts them.
struct Offset {
  uint32_t begin = 0;
  uint32_t end = 0;
  bool operator==(const Offset&) const = default;
};

// A text, or a pair of texts, as a model reads it: four columns of equal length, one row per token.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;  // which text of a pair
  std::vector<Offset> offsets;    // in the token's own text; {0, 0} for tokens that the template adds
  std::vector<uint8_t> special_tokens_mask;  // 1 for tokens that the template adds

  size_t size() const { return ids.size(); }
  void push_back(int32_t id, int32_t type_id, Offset offset, bool special);
};

// The tokens of one text before a template is applied.
struct Sequence {
  std::vector<int32_t> ids;
  std::vector<Offset> offsets;

  void push_back(int32_t id, Offset offset);
};

// What stands around and between the texts: Hugging Face's TemplateProcessing (BertProcessing is one such
// template).
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

struct EncodeOptions {
  bool special_tokens = true;  // what the template adds
  std::optional<size_t> max_length =
      {};  // of the whole encoding, special tokens included; none: nothing is cut
};

// Cuts (pairs by `longest_first`: see Hugging Face's truncation strategies) and joins. `second` is null for a
// single text. Throws ConfigError when the special tokens alone are more than max_length.
Encoding post_process(const std::vector<TemplatePiece>& pieces, Sequence& first, Sequence* second,
                      const EncodeOptions& options);

}  // namespace stretto::text
