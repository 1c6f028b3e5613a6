#include "stretto/config/tasks/causal_lm.h"

#include "stretto/base/error.h"
#include "stretto/config/recipe.h"
#include "stretto/config/task_kind.h"
#include "stretto/model_config/heads.h"
#include "stretto/settings/rule.h"

namespace stretto {

void check_stride(const Recipe& recipe, int64_t window) {
  const auto& stride = recipe.task_settings.as<CausalLmConfig>().stride;
  if (!stride || *stride <= window) return;
  throw ConfigError(
      "{}: windows of {} tokens that begin {} tokens apart leave tokens out; set it to {} at most",
      recipe.origins.label("causal_lm.stride"), window, *stride, window);
}

namespace {

constexpr int64_t usual_block = 1024;  // tokens, as in transformers' run_clm.py

void check_causal_lm(const Recipe& recipe) {
  const auto& settings = recipe.task_settings.as<CausalLmConfig>();
  check_stride(recipe, recipe.data.max_length);
  if (settings.keep_newlines && settings.document != TextDocument::line) {
    throw ConfigError("{}: it has a meaning with causal_lm.document: line only; remove it, or set that",
                      recipe.origins.label("causal_lm.keep_newlines"));
  }
}

}  // namespace

void CausalLmConfig::fields(settings::Fields& field) {
  field(
      "blocks", blocks,
      "samples of data.max_length tokens: documents cuts the documents, one after the other, and tokens attend within their document only; stream cuts them as one text; run-clm does so for each 1,000 documents and drops the rest, as transformers' run_clm.py");
  field(
      "document", document,
      "plain text: what a document is: a file, a line, or lines between blank ones; a line of JSON Lines (key data.text) is always one");
  field("keep_newlines", keep_newlines, "with document: line, the line end belongs to the document");
  field("append_eos", append_eos, "each document ends with the tokenizer's eos_token");
  field(
      "stride", stride,
      "`stretto test` reads the text as one stream through windows of data.max_length tokens, this far apart, and predicts each token once, with at least data.max_length - stride tokens before it; unset: by blocks, as during training",
      settings::at_least(1).may_change_on_resume());
}

TaskKind causal_lm_kind() {
  return {.name = "causal-lm",
          .help = "text, of which each next token is predicted",
          .settings = settings::Settings(CausalLmConfig{}),
          .head = heads::causal_language_model,
          .default_monitor = [](const Recipe&) { return "loss"; },
          .check = check_causal_lm,
          .max_length = usual_block,
          .draws_validation = true,
          .writes_texts = true,
          .divides_models = true,
          .reads_corpora = true};
}

}  // namespace stretto
