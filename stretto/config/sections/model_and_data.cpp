#include <fmt/ranges.h>

#include "stretto/config/recipe.h"
#include "stretto/config/sections/limits.h"
#include "stretto/config/task_kind.h"
#include "stretto/model_config/outline.h"
#include "stretto/settings/rule.h"

// The sections model, tokenizer and data.
namespace stretto {

using settings::above;
using settings::at_least;
using settings::may_change_on_resume;
using settings::one_of;

namespace {

// "; unset with task question-answering: 384"
std::string describe_max_lengths() {
  std::string text;
  for (const TaskKind& kind : task_kinds().entries())
    if (kind.max_length) text += fmt::format("; unset with task {}: {}", kind.name, *kind.max_length);
  return text;
}

// "sequence_tagger"
std::string describe_new_sections() {
  std::vector<std::string> sections;
  for (const TaskKind& kind : task_kinds().entries())
    if (kind.new_model) sections.push_back(kind.new_model->section);
  return fmt::format("{}", fmt::join(sections, ", "));
}

}  // namespace

void ModelConfig::fields(settings::Fields& field) {
  field(
      "path", path,
      "model folder in Hugging Face layout to start from: config.json and model.safetensors; or the name (owner/name) of a model that `stretto pull` has fetched");
  const std::vector<std::string> new_types = new_model_types(), decoders = bundled_decoders();
  field(
      "config", config,
      fmt::format(
          "instead of path: a config.json, for a model with random weights, or its keys as a section ({}); one of model_type {} needs no vocabulary: it is made from data.train",
          fmt::join(decoders, ", "), fmt::join(new_types, " or ")));
  field(
      "type", type,
      fmt::format(
          "with config: its model_type; {}, instead of path and config: a new model with the settings of its section ({})",
          fmt::join(new_types, " or "), describe_new_sections()),
      one_of(model_types()).checked_later());
  field("dropout", dropout, "overrides every dropout probability of the model's config.json",
        at_least(0).below(1));
}

void TokenizerConfig::fields(settings::Fields& field) {
  field(
      "path", path,
      "folder with tokenizer.json, vocab.txt, vocab.json, sentencepiece.bpe.model or tokenizer.model; unset: model.path");
  field("lowercase", lowercase,
        "lower-case the text, where there is only a vocab.txt; unset: inferred from the vocabulary");
  field(
      "add_prefix_space", add_prefix_space,
      fmt::format(
          "byte-level BPE: put a space in front of each text; unset: as the tokenizer's files say, with task {} true",
          tasks_with([](const TaskKind& kind) { return kind.splits_words; })));
}

void DataConfig::fields(settings::Fields& field) {
  field(
      "train", train,
      "training samples: .tsv, .csv or .jsonl; CoNLL or .jsonl for tags; SQuAD's .json or .jsonl for questions");
  field(
      "mixture", mixture,
      fmt::format(
          "instead of train, with task {}: text files and corpora with weights, as in [wiki=0.7, books.txt=0.3], which are the shares of their blocks among those of an epoch",
          tasks_with([](const TaskKind& kind) { return kind.reads_corpora; })));
  field("validation", validation, "samples that are evaluated during training", may_change_on_resume());
  field(
      "validation_split", validation_split,
      "instead of validation: the part of the training samples to evaluate and not to train on, drawn by training.seed with the same share of each label",
      above(0).below(1));
  field("test", test, "samples for `stretto test`", may_change_on_resume());
  const settings::Rule most = at_least(1).at_most(max_total);
  const auto first = [](const char* file) {
    return fmt::format("read only the first so many texts, sentences or questions of {}; unset: all", file);
  };
  field("max_train_samples", max_train_samples, first("train"), most);
  field("max_validation_samples", max_validation_samples, first("validation"), most.may_change_on_resume());
  field("max_test_samples", max_test_samples, first("test"), most.may_change_on_resume());
  field(
      "text", text,
      "name of the text column, in CoNLL files the number of the token column; unset: inferred from the header or layout of the file");
  field("text_pair", text_pair, "name of the column of the second text, for tasks on pairs");
  field(
      "label", label,
      "name of the label column, in CoNLL files the number of the tag column; unset: inferred from the header or layout of the file");
  field("encoding", encoding, "how the bytes of the files are read; unset: utf-8, which refuses others",
        one_of({"utf-8", "utf-8-replace", "latin-1"}));
  field(
      "max_length", max_length,
      "maximum tokens per sample, special tokens included; longer texts are truncated, sentences and contexts of the other tasks split into windows" +
          describe_max_lengths(),
      at_least(2).at_most(max_count));
  field(
      "pad_to_multiple_of", pad_to_multiple_of,
      "packed batches are padded at their end to a multiple of so many tokens, so that the shapes of matmuls recur; 1: not at all",
      at_least(1).at_most(4096).may_change_on_resume());
  field("cache", cache,
        "folder in which token ids are cached between runs; unset: cache/ in the output folder",
        may_change_on_resume());
}

}  // namespace stretto
