#include "stretto/compat/flair_script.h"

#include <algorithm>
#include <map>
#include <optional>

#include "stretto/base/error.h"
#include "stretto/base/json.h"
#include "stretto/base/strings.h"
#include "stretto/compat/script_flags.h"
#include "stretto/strategy/strategy.h"

namespace stretto::compat {
namespace {

// Parses "3", or a list of devices: "0,1", "[0, 1]".
void use_devices(ScriptState& state, const std::string& value) {
  if (value == "None" || value == "auto" || value == "-1") return;
  std::optional<int64_t> count;
  if (const auto number = parse_int(value)) {
    count = *number;
  } else {
    std::string list = value;
    std::erase_if(list, [](char c) { return c == '[' || c == ']' || c == ' '; });
    const auto devices = split(list, ',');
    if (std::ranges::all_of(devices, [](std::string_view device) { return parse_int(device).has_value(); }))
      count = std::ssize(devices);
  }
  if (!count || *count < 1)
    throw ConfigError("--devices {}: expected the number of ranks, or a list of devices such as 0,1", value);
  state.plan.ranks = count;
  state.plan.notes.push_back(fmt::format(
      "--devices {}: -N {}; each rank takes a GPU if there are enough, or processor cores", value, *count));
}

void use_accelerator(ScriptState& state, const std::string& value) {
  static const std::map<std::string, std::string> devices = {
      {"None", "auto"}, {"auto", "auto"}, {"cpu", "cpu"}, {"gpu", "cuda"}, {"cuda", "cuda"}};
  const auto found = devices.find(value);
  if (found == devices.end()) throw ConfigError("--accelerator {}: expected cpu, gpu or auto", value);
  state.recipe.set("training.device", found->second);
}

void use_device(ScriptState& state, const std::string& value) {
  if (state.has("accelerator")) return;
  if (value != "cpu" && !value.starts_with("cuda"))
    throw ConfigError("--device {}: expected cpu or cuda:0", value);
  if (value == "cpu") state.recipe.set("training.device", "cpu");
}

void use_precision(ScriptState& state, const std::string& value) {
  static const std::map<std::string, std::string> precisions = {
      {"32", "fp32"}, {"64", "fp64"}, {"16", "bf16"}, {"bf16", "bf16"}};
  const auto found = precisions.find(value);
  if (found == precisions.end()) throw ConfigError("--precision {}: expected 32, 16, bf16 or 64", value);
  state.recipe.set("training.precision", found->second);
  if (value == "16")
    state.plan.notes.emplace_back("--precision 16: computed in bf16, with fp32 gradients and master weights");
}

// Accepts Lightning's names; "deepspeed" means stage 2.
void use_strategy(ScriptState& state, const std::string& value) {
  if (value == "None") return;
  std::string name = value == "deepspeed" ? "deepspeed_stage_2" : value;
  if (name == "ddp_spawn" || name == "dp") name = "ddp";
  if (name == "ddp_sharded") name = "zero2";
  try {
    const Strategy strategy = parse_strategy(name);
    state.recipe.set("training.strategy", strategy.kind);
  } catch (const ConfigError& error) {
    throw ConfigError("--strategy {}: {}", value, error.what());
  }
}

void use_whole(ScriptState& state, const char* flag, const std::string& value, const char* setting) {
  const auto number = parse_int(value);
  if (!number || *number < 1) throw ConfigError("--{} {}: expected a whole number from 1", flag, value);
  state.recipe.set(setting, value);
}

// An ignored flag whose value is still checked.
Flag checked(Flag ignored_flag, const std::function<void(const std::string& value)>& check) {
  const auto note = ignored_flag.use;
  ignored_flag.use = [note, check](ScriptState& state, const std::string& value) {
    check(value);
    note(state, value);
  };
  return ignored_flag;
}

std::function<void(const std::string&)> whole_from_1(const std::string& flag) {
  return [flag](const std::string& value) {
    if (parse_int(value).value_or(0) < 1)
      throw ConfigError("--{} {}: expected a whole number from 1", flag, value);
  };
}

void check_storage_mode(const std::string& value) {
  if (value != "cpu" && value != "gpu")
    throw ConfigError("--embeddings_storage_mode {}: expected none, cpu or gpu", value);
}

const std::vector<Flag>& flair_flags() {
  static const std::vector<Flag> table = {
      read_later("dataset_name"),
      refused(
          "dataset_arguments", false, {"", "{}"},
          "stretto reads column files; name their columns in the recipe of --print-recipe (data.text, data.label)"),
      {"model_name_or_path", false,
       [](ScriptState& state, const std::string& value) { state.plan.model = value; }},
      {"output_dir", false,
       [](ScriptState& state, const std::string& value) { state.plan.output_dir = value; }},
      {"num_epochs", false,
       [](ScriptState& state, const std::string& value) {
         use_whole(state, "num_epochs", value, "training.epochs");
       }},
      {"batch_size", false,
       [](ScriptState& state, const std::string& value) {
         use_whole(state, "batch_size", value, "training.global_batch_size");
       }},
      checked(ignored("mini_batch_chunk_size", false,
                      "micro-batches do not change results; training.batch_size limits their memory"),
              whole_from_1("mini_batch_chunk_size")),
      setting("learning_rate", "optimizer.lr"),
      setting("seed", "training.seed"),
      setting("weight_decay", "optimizer.weight_decay"),
      {"device", false, use_device},
      {"accelerator", false, use_accelerator},
      {"strategy", false, use_strategy},
      {"devices", false, use_devices},
      refused("num_nodes", false, {"1"},
              "for several hosts pass --hosts to stretto train, with the recipe of --print-recipe"),
      {"precision", false, use_precision},
      checked(ignored("embeddings_storage_mode", false,
                      "embeddings that are fine-tuned change in every step; none are stored"),
              check_storage_mode),
      checked(ignored("hidden_size", false, "the script's tagger has no recurrent layer (use_rnn=False)"),
              whole_from_1("hidden_size")),
      read_later("layers"),
      read_later("subtoken_pooling"),
      read_later("use_crf", true),
      read_later("context_size"),
      read_later("respect_document_boundaries", true),
  };
  return table;
}

// Flair reads sentences of any length. The translation uses the model's number of positions, at most 512;
// longer sentences are split into windows.
std::string max_length_of(const std::filesystem::path& model) {
  int64_t positions = 512;
  try {
    const nlohmann::json config = read_json(model / "config.json");
    const bool offset = config.value("model_type", "").ends_with("roberta");  // positions begin at 2
    positions = std::min(positions, config.value("max_position_embeddings", positions) - (offset ? 2 : 0));
  } catch (const std::exception&) {  // training will report it
  }
  return std::to_string(std::max<int64_t>(positions, 2));
}

bool names_part(const std::string& name, std::initializer_list<const char*> parts) {
  return std::ranges::any_of(parts, [&](const char* part) { return name.find(part) != std::string::npos; });
}

// Finds the files like Flair's ColumnCorpus.
void use_dataset(ScriptState& state) {
  const std::filesystem::path folder = state.given.at("dataset_name");
  std::error_code failed;
  if (!std::filesystem::is_directory(folder, failed)) {
    throw ConfigError(
        "--dataset_name {}: it is not a folder; stretto downloads nothing: pass a folder with the column files of the data set, such as one below ~/.flair/datasets",
        folder.string());
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().filename().string()[0] != '.') files.push_back(entry.path());
  std::ranges::sort(files);
  const auto find = [&](const char* what, std::initializer_list<const char*> parts,
                        std::initializer_list<const char*> others) {
    std::vector<std::filesystem::path> found;
    for (const auto& file : files) {
      const std::string name = lower_case(file.filename().string());
      if (names_part(name, parts) && !names_part(name, others)) found.push_back(file);
    }
    if (found.size() == 1) return found.front();
    throw ConfigError("--dataset_name {}: {} files have {} in their names; expected one file of {} data",
                      folder.string(), found.size(),
                      fmt::join(std::vector<std::string>(parts.begin(), parts.end()), " or "), what);
  };
  state.set_for("dataset_name", "data.train", quoted(find("training", {"train"}, {}).string()));
  state.plan.validation = find("validation", {"dev", "testa", "valid"}, {});
  state.plan.test = find("test", {"test"}, {"testa"});
  state.set_for("dataset_name", "data.validation", quoted(state.plan.validation->string()));
  state.set_for("dataset_name", "data.test", quoted(state.plan.test->string()));
}

// With the script's defaults, the model is a transformer with a head on each word's first token, in Hugging
// Face's format; otherwise it is a sequence tagger without a recurrent layer, like Flair's.
void use_model(ScriptState& state) {
  const std::string layers = state.value("layers", "-1"), pooling = state.value("subtoken_pooling", "first");
  const bool use_crf = is_true("use_crf", state.value("use_crf", "False"));
  if (pooling != "first" && pooling != "last" && pooling != "first_last" && pooling != "mean")
    throw ConfigError("--subtoken_pooling {}: expected first, last, first_last or mean", pooling);
  const std::string model = quoted(state.plan.model.string());
  if (layers == "-1" && pooling == "first" && !use_crf)
    return state.set_for("model_name_or_path", "model.path", model);
  state.recipe.set("model.type", "sequence-tagger");
  state.set_for("model_name_or_path", "sequence_tagger.transformer", model);
  if (state.has("layers")) state.set_for("layers", "sequence_tagger.layers", quoted(layers));
  const std::map<std::string, std::string> settings = {{"subtoken_pooling", quoted(pooling)},
                                                       {"use_crf", use_crf ? "true" : "false"},
                                                       {"rnn_type", "none"},
                                                       {"reproject_embeddings", "false"},
                                                       {"word_dropout", use_crf ? "0.05" : "0"}};
  for (const auto& [name, value] : settings) state.recipe.set("sequence_tagger." + name, value);
}

// Sets the number of context words from neighbouring sentences on each side (FLERT).
void use_context(ScriptState& state) {
  const std::string size = state.value("context_size", "0"), flag = "respect_document_boundaries";
  const bool respect = is_true(flag, state.value(flag, "False"));
  const auto words = parse_int(size);
  if (!words || *words < 0) throw ConfigError("--context_size {}: expected a whole number from 0", size);
  if (*words == 0) {
    if (state.has(flag))
      state.plan.notes.push_back(
          fmt::format("--{}: not used: without --context_size no words of other sentences are read", flag));
    return;
  }
  state.set_for("context_size", "token_classification.context_size", size);
  state.recipe.set("token_classification." + flag, respect ? "true" : "false");
}

void set_flair_defaults(ScriptState& state) {
  RecipeText& recipe = state.recipe;
  recipe.set("task", "token-classification");
  recipe.set("token_classification.tag_scheme", "IOBES");
  recipe.set("data.max_length", "512");
  recipe.set("training.epochs", "10");
  recipe.set("training.global_batch_size", "8");
  recipe.set("training.max_grad_norm", "5.0");
  recipe.set("training.seed", "42");
  recipe.set("optimizer.type", "AdamW");
  recipe.set("optimizer.lr", "5e-05");
  recipe.set("optimizer.weight_decay", "0.0");
  recipe.set("scheduler.type", "LinearWithWarmup");
  recipe.set("scheduler.warmup_ratio", "0.1");
  recipe.set("evaluate.every", "epoch");
  recipe.set("track.log_every", "0.1ep");
}

}  // namespace

ScriptPlan translate_flair_script(const std::vector<std::string>& arguments) {
  ScriptState state{
      .script = Script::flair_ner, .plan = {}, .recipe = {}, .given = parse_flags(flair_flags(), arguments)};
  require_flag(state, "model_name_or_path", "to start from");
  require_flag(state, "dataset_name", "to train on");
  set_flair_defaults(state);
  state.plan.output_dir = "resources/taggers/ner";
  state.use(flair_flags());
  state.recipe.set("data.max_length", max_length_of(state.plan.model));
  use_model(state);
  use_context(state);
  use_dataset(state);
  ScriptPlan& plan = state.plan;
  plan.train = plan.evaluate = plan.predict = plan.overwrite = plan.resume = true;
  plan.notes.emplace_back(
      "AdamW with linear decay after a warm-up of a tenth of the steps, as Flair's fine_tune; the script's LiteTrainer uses SGD with plateau annealing at this rate, which hardly trains");
  if (plan.ranks.value_or(1) > 1)
    plan.notes.emplace_back(
        "--batch_size is that of all ranks together: results do not depend on their number");
  plan.notes.emplace_back("the best model by f1 on the dev set is kept and tested, not the last one");
  return finish_plan(state);
}

}  // namespace stretto::compat
