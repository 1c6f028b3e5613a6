#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/text/tokenizer_sections.h"

namespace stretto::text {
namespace {

std::vector<int32_t> read_special_ids(const JsonField& special_tokens, const std::string& name) {
  const JsonField ids = special_tokens[name.c_str()]["ids"];
  std::vector<int32_t> result;
  for (size_t i = 0; i < ids.as_list().size(); ++i) result.push_back(ids[i].as_id());
  return result;
}

// Throws unless the template contains a text once: a missing text would be lost silently, and a repeated one
// could not be truncated.
void require_once(const std::vector<TemplatePiece>& pieces, TemplatePiece::Kind kind,
                  const JsonField& place) {
  const auto count = std::count_if(pieces.begin(), pieces.end(),
                                   [&](const TemplatePiece& piece) { return piece.kind == kind; });
  if (count == 1) return;
  throw DataError("{}: expected the sequence \"{}\" once, found it {} times", place.place(),
                  kind == TemplatePiece::Kind::first ? "A" : "B", count);
}

std::vector<TemplatePiece> read_template(const JsonField& pieces, const JsonField& special_tokens,
                                         bool pair) {
  std::vector<TemplatePiece> result;
  for (size_t i = 0; i < pieces.as_list().size(); ++i) {
    const JsonField piece = pieces[i];
    if (piece.has("SpecialToken")) {
      const JsonField special = piece["SpecialToken"];
      result.push_back({TemplatePiece::Kind::special, special["type_id"].as_id(),
                        read_special_ids(special_tokens, special["id"].as_string())});
      continue;
    }
    const JsonField sequence = piece["Sequence"];
    const std::string& id = sequence["id"].as_string();
    if (id != "A" && !(id == "B" && pair)) {
      throw DataError("{}: there is no sequence \"{}\" here; expected {}", sequence.place(), id,
                      pair ? "\"A\" or \"B\"" : "\"A\"");
    }
    const auto kind = id == "A" ? TemplatePiece::Kind::first : TemplatePiece::Kind::second;
    result.push_back({kind, sequence["type_id"].as_id()});
  }
  require_once(result, TemplatePiece::Kind::first, pieces);
  if (pair) require_once(result, TemplatePiece::Kind::second, pieces);
  return result;
}

Template read_templates(const JsonField& section) {
  const JsonField special_tokens = section["special_tokens"];
  return {.single = read_template(section["single"], special_tokens, false),
          .pair = read_template(section["pair"], special_tokens, true)};
}

// ByteLevel and RobertaProcessing trim offsets.
OffsetTrimming read_trimming(const JsonField& section, const JsonField& config,
                             const TokenizerOptions& options) {
  const bool here = section.bool_or("add_prefix_space", true);
  return {.trim = config.bool_or("trim_offsets", section.bool_or("trim_offsets", true)),
          .add_prefix_space = choose_prefix_space(here, config, options)};
}

void read_into(PostProcessor& processor, const JsonField& section, const JsonField& config,
               const TokenizerOptions& options) {
  const std::string& type = section["type"].as_string();
  const auto id_of = [&](const char* key) { return section[key][1].as_id(); };
  if (type == "BertProcessing") {
    processor.pieces = bert_template(id_of("cls"), id_of("sep"));
  } else if (type == "RobertaProcessing") {
    processor.pieces = roberta_template(id_of("cls"), id_of("sep"));
    processor.offsets = read_trimming(section, config, options);
  } else if (type == "TemplateProcessing") {
    processor.pieces = read_templates(section);
  } else if (type == "ByteLevel") {
    processor.offsets = read_trimming(section, config, options);
  } else if (type == "Sequence") {
    const JsonField steps = section["processors"];
    for (size_t i = 0; i < steps.as_list().size(); ++i) read_into(processor, steps[i], config, options);
  } else {
    section.unavailable(type,
                        "BertProcessing, RobertaProcessing, TemplateProcessing, ByteLevel and Sequence");
  }
}

}  // namespace

PostProcessor read_post_processor(const JsonField& file, const JsonField& config,
                                  const TokenizerOptions& options) {
  PostProcessor processor;
  if (file.has("post_processor")) read_into(processor, file["post_processor"], config, options);
  return processor;
}

}  // namespace stretto::text
