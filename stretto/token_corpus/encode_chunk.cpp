#include "stretto/token_corpus/encode_chunk.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/json.h"
#include "stretto/base/strings.h"
#include "stretto/base/utf8.h"
#include "stretto/token_corpus/json_text.h"

namespace stretto::token_corpus {
namespace {

template <class Token>
void append_tokens(const std::vector<int32_t>& ids, std::string& bytes) {
  bytes.resize(ids.size() * sizeof(Token));
  std::ranges::copy(ids, reinterpret_cast<Token*>(bytes.data()));
}

}  // namespace

ChunkEncoder::ChunkEncoder(const text::Tokenizer& tokenizer, const text::TemplateIds& around,
                           const std::string& column, const std::vector<std::filesystem::path>& files,
                           const OptionNames& names)
    : tokenizer_(tokenizer),
      encoder_(tokenizer),
      around_(around),
      column_(column),
      column_option_(names("column")),
      files_(files) {}

// "FILE:LINE" of the byte at `position` of the chunk.
std::string ChunkEncoder::place(const Chunk& chunk, size_t position) const {
  const auto lines = std::ranges::count(std::string_view(chunk.bytes).substr(0, position), '\n');
  return fmt::format("{}:{}", files_[chunk.begin.file].string(), chunk.begin.line + lines);
}

void ChunkEncoder::require_utf8(const Chunk& chunk, const Piece& piece, std::string_view text) const {
  if (tokenizer_.reads_any_bytes()) return;
  const size_t invalid = find_invalid_utf8(text);
  if (invalid == text.size()) return;
  throw DataError(
      "{}: byte 0x{:02x} is not UTF-8, and this tokenizer reads text only (byte-level BPE keeps any bytes); save the file as UTF-8",
      place(chunk, piece.begin + invalid), static_cast<unsigned char>(text[invalid]));
}

void ChunkEncoder::refuse_column(const nlohmann::json& object, const std::string& place) const {
  const auto found = object.find(column_);
  if (found != object.end()) {
    throw DataError("{}: \"{}\" is {}; expected a text, or a list of ids", place, column_,
                    found->is_array()    ? "a list"
                    : found->is_object() ? "an object"
                                         : found->dump());
  }
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  throw DataError("{}: there is no key \"{}\" among {}{}; set {} to the key of the text", place, column_,
                  fmt::join(keys, ", "), did_you_mean(column_, keys), column_option_);
}

void ChunkEncoder::read_ids(const nlohmann::json& object, const nlohmann::json& list,
                            const std::string& place) {
  const auto beside = [&](const char* key) -> const nlohmann::json* {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) return nullptr;
    if (found->is_array() && found->size() == list.size()) return &*found;
    throw DataError("{}: \"{}\" is no list of {}, one per id of \"{}\"", place, key,
                    counted(static_cast<int64_t>(list.size()), "number"), column_);
  };
  const nlohmann::json *mask = beside("attention_mask"), *labels = beside("labels");
  row_ids_.emplace();
  for (size_t i = 0; i < list.size(); ++i) {
    const auto id = whole_number(list[i]);
    if (!id || *id < 0 || *id >= tokenizer_.vocab_size()) {
      throw DataError("{}: position {} of \"{}\" is {}; expected ids of the tokenizer, 0 to {}", place, i,
                      column_, list[i].dump(), tokenizer_.vocab_size() - 1);
    }
    const bool is_padding = mask != nullptr && (*mask)[i] == 0;
    if (labels != nullptr && (*labels)[i] != *id && !is_padding) {
      throw DataError(
          "{}: position {} of \"labels\" is {}, but {} in \"{}\"; a corpus is trained on as a whole, so that they must be equal",
          place, i, (*labels)[i].dump(), *id, column_);
    }
    if (!is_padding) row_ids_->push_back(static_cast<int32_t>(*id));
  }
}

// Valid until the next call. Sets row_ids_ instead for a list of ids.
std::string_view ChunkEncoder::text_of(const Chunk& chunk, const Piece& piece) {
  const std::string_view bytes = std::string_view(chunk.bytes).substr(piece.begin, piece.end - piece.begin);
  if (!chunk.json) {
    require_utf8(chunk, piece, bytes);
    return bytes;
  }
  if (const auto text = find_json_text(bytes, column_, json_text_)) return *text;
  if (trim(bytes).empty()) return "";
  nlohmann::json object = parse_json(
      bytes, files_[chunk.begin.file].string(), /*max_depth=*/64,
      chunk.begin.line + std::ranges::count(std::string_view(chunk.bytes).substr(0, piece.begin), '\n'));
  if (!object.is_object())
    throw DataError("{}: a JSON {} where an object is needed", place(chunk, piece.begin), object.type_name());
  const auto found = object.find(column_);
  if (found != object.end() && found->is_null()) return "";
  if (found != object.end() && found->is_array() && (found->empty() || found->front().is_number())) {
    read_ids(object, *found, place(chunk, piece.begin));
    return "";
  }
  if (found == object.end() || !found->is_string()) refuse_column(object, place(chunk, piece.begin));
  json_text_ = std::move(found->get_ref<std::string&>());
  return json_text_;
}

EncodedChunk ChunkEncoder::encode(const Chunk& chunk) {
  EncodedChunk encoded;
  encoded.end = chunk.end;
  encoded.file_bytes = chunk.file_bytes;
  ids_.clear();
  for (const Piece& piece : chunk.pieces) {
    row_ids_.reset();
    const std::string_view text = text_of(chunk, piece);
    if (row_ids_ && !row_ids_->empty()) {
      ids_.insert(ids_.end(), row_ids_->begin(), row_ids_->end());
      encoded.document_ends.push_back(std::ssize(ids_));
      continue;
    }
    if (text.empty() && piece.begins && piece.ends) {
      ++encoded.empty_documents;
      continue;
    }
    encoded.text_bytes += std::ssize(text);
    if (piece.begins) ids_.insert(ids_.end(), around_.before.begin(), around_.before.end());
    encoder_.append(text, ids_);
    if (!piece.ends) continue;
    ids_.insert(ids_.end(), around_.after.begin(), around_.after.end());
    encoded.document_ends.push_back(std::ssize(ids_));
  }
  encoded.tokens = std::ssize(ids_);
  if (token_width(tokenizer_.vocab_size()) == 2) {
    append_tokens<uint16_t>(ids_, encoded.bytes);
  } else {
    append_tokens<uint32_t>(ids_, encoded.bytes);
  }
  return encoded;
}

}  // namespace stretto::token_corpus
