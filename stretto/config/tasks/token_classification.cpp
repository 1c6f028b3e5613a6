#include "stretto/config/tasks/token_classification.h"

#include "stretto/config/data_names.h"
#include "stretto/config/task_kind.h"
#include "stretto/config/tasks/new_tagger.h"
#include "stretto/config/tasks/tagger_settings.h"
#include "stretto/model_config/heads.h"
#include "stretto/settings/rule.h"

namespace stretto {
namespace {

constexpr double most_words = 1e6;

}  // namespace

void TokenClassificationConfig::fields(settings::Fields& field) {
  field(
      "long_sentences", long_sentences,
      "sentences of more than data.max_length tokens: window splits them into overlapping samples, in which each word is predicted once; cut leaves the words behind out; refuse ends the run");
  field("stride", stride,
        "tokens that consecutive windows of a sentence share; unset: at most a quarter of data.max_length",
        settings::at_least(0).at_most(most_words));
  field("label_all_tokens", label_all_tokens,
        "train on all tokens of a word (with I- after the first one), instead of its first token only");
  field("tag_scheme", tag_scheme,
        "convert the tags of the files to this scheme; keep: as they are; BIO is IOB2, BIOES is IOBES");
  field(
      "tag_names", tag_names,
      "for JSON Lines whose tags are numbers: the names of 0, 1, 2, ...; unset: the classes of a model that was trained as a tagger; [\"*\"]: these, else the numbers themselves");
  field(
      "loss_weights", loss_weights,
      "factors of the losses of tags, each TAG=WEIGHT; others have weight 1; not with a conditional random field");
  field(
      "loss_average", loss_average,
      "what the loss is divided by: the words, or the sentences of the global batch; Flair's sum over a batch of n at rate r, clipped to c, is sentences at rate n * r, clipped to c / n");
  field(
      "context_size", context_size,
      "words of the sentences before and behind, on each side, that a transformer reads too, as far as data.max_length has room",
      settings::at_least(0).at_most(most_words));
  field("respect_document_boundaries", respect_document_boundaries,
        "context ends at -DOCSTART- lines; off: it includes sentences of other documents");
  field(
      "context_dropout", context_dropout,
      "probability with which a training sentence is read without its context, drawn per epoch and sentence",
      settings::at_least(0).at_most(1));
  field(
      "embeddings_storage_mode", embeddings_storage_mode,
      "what becomes of the states of a sequence-tagger's frozen transformer: cpu keeps them in memory for later epochs, gpu on each rank's GPU; none computes them again",
      settings::may_change_on_resume());
}

OptionNames names_of_words() {
  OptionNames names = data_names;
  names.set("token", "data.text");
  names.set("tag", "data.label");
  for (const char* option : {"long_sentences", "stride", "tag_names"})
    names.set(option, std::string("token_classification.") + option);
  return names;
}

TaskKind token_classification_kind() {
  return {
      .name = "token-classification",
      .help = "words and their tags",
      .settings = settings::Settings(TokenClassificationConfig{}),
      .further_sections = {{"sequence_tagger",
                            "a new tagger of words (model.type: sequence-tagger; task: token-classification)",
                            settings::Settings(TaggerSettings{})}},
      .head = heads::token_classification,
      .default_monitor = [](const Recipe&) { return "f1"; },
      .new_model = new_tagger_kind(),
      .splits_words = true,
      .divides_models = true};
}

}  // namespace stretto
