#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/base/strings.h"
#include "stretto/checkpoint_format/folder.h"
#include "stretto/compat/llama_flags.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/llama.h"

namespace stretto::compat {
namespace {

using Path = std::filesystem::path;

bool is_there(const Path& path) {
  std::error_code failed;
  return std::filesystem::exists(path, failed);
}

// The folder that a flag names itself, or by the config.json in it.
Path folder_of(const Path& named) {
  if (named.extension() != ".json") return named;
  return named.has_parent_path() ? named.parent_path() : Path(".");
}

// The config.json of a flag that names a folder, or the file itself. Throws ConfigError for another family.
Path config_of(const ScriptState& state, const std::string& flag) {
  Path file = state.given.at(flag);
  if (std::error_code failed; std::filesystem::is_directory(file, failed)) file /= "config.json";
  if (!is_there(file))
    throw ConfigError("{}: {} does not exist; expected a folder with the config.json of a Llama, or the file",
                      state.text(flag), file.string());
  nlohmann::json config;
  try {
    config = read_config_json(file);
  } catch (const DataError& error) {
    throw ConfigError("{}: {}; expected a folder with the config.json of a Llama, or the file",
                      state.text(flag), error.what());
  }
  const std::string type = text_in(config, "model_type");
  if (type != "llama")
    throw ConfigError(
        "{}: the model_type of {} is {}; expected llama (stretto run-clm and recipes of the task causal-lm train other families)",
        state.text(flag), file.string(), type.empty() ? "missing" : "\"" + type + "\"");
  return file;
}

// The sizes that weights and a config.json must have in common, by their keys there.
nlohmann::ordered_json sizes_of(const Path& file) {
  const LlamaConfig config = LlamaConfig::from_json(read_config_json(file), file.string());
  return {{"vocab_size", config.vocab_size},
          {"hidden_size", config.hidden_size},
          {"intermediate_size", config.intermediate_size},
          {"num_hidden_layers", config.num_hidden_layers},
          {"num_attention_heads", config.num_attention_heads},
          {"num_key_value_heads", config.num_key_value_heads},
          {"head_dim", config.head_dim}};
}

void require_same_sizes(const ScriptState& state, const std::string& weights, const Path& of_weights,
                        const Path& described) {
  const nlohmann::ordered_json found = sizes_of(of_weights), wanted = sizes_of(described);
  for (const auto& [key, value] : wanted.items()) {
    if (found.at(key) == value) continue;
    throw ConfigError(
        "{}: {} is {} in its config.json, but {} in that of {}; remove --model_path, or pass the "
        "config.json of the weights",
        state.text(weights), key, found.at(key).dump(), value.dump(), state.text("model_path"));
  }
}

// A config.json as a section of the recipe, with the sizes that flags override.
void use_changed_config(ScriptState& state, const Path& file, int64_t layers, int64_t width) {
  nlohmann::json config = read_config_json(file);
  config.erase("model_type");
  if (layers > 0) config["num_hidden_layers"] = layers;
  if (width > 0) config["hidden_size"] = width;
  state.recipe.set("model.type", "llama");
  state.set_for(width > 0 ? "hidden_size" : "num_layers", "model.config", config.dump());
}

// Whether a flag names a folder of datasets' save_to_disk() with a column of ids, as the scripts use it.
// Throws ConfigError for one without texts either.
bool has_saved_ids(const ScriptState& state, const std::string& flag) {
  const Path folder = state.given.at(flag);
  if (!is_there(folder / "state.json")) return false;
  if (!is_there(folder / "dataset_info.json")) return true;
  const nlohmann::json info = read_json(folder / "dataset_info.json");
  const auto features = info.is_object() ? info.find("features") : info.end();
  std::vector<std::string> columns;
  if (features != info.end() && features->is_object())
    for (const auto& [name, feature] : features->items()) columns.push_back(name);
  const auto has = [&](const char* name) { return std::ranges::find(columns, name) != columns.end(); };
  if (has("input_ids") || has("text")) return has("input_ids");
  throw ConfigError("{}: the columns of this data set are {}; expected input_ids, or text", state.text(flag),
                    fmt::join(columns, ", "));
}

// The first record of a file of JSON Lines; null for another file.
nlohmann::json first_record(const Path& file) {
  std::error_code failed;
  if (file.extension() != ".jsonl" || !std::filesystem::is_regular_file(file, failed)) return nullptr;
  const MappedFile mapped(file);
  const std::string_view line = mapped.text().substr(0, mapped.text().find('\n'));
  return nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
}

bool is_instruction(const nlohmann::json& record) {
  return record.is_object() && record.contains("instruction") && record.contains("response");
}

// The folder with checkpoints that --checkpoint_dir or the output names: the folder of a run, or that of its
// checkpoints.
Path checkpoint_folder(const ScriptState& state) {
  const Path folder = state.value("checkpoint_dir", state.plan.output_dir.string());
  return is_there(folder / "checkpoints") ? folder / "checkpoints" : folder;
}

void use_loaded_step(ScriptState& state) {
  const int64_t step = whole_value(state, "load_step", 0, 0);
  for (const char* flag : {"load_step", "load_epoch"}) {
    if (whole_value(state, flag, 0, 0) > 0 && !state.is_true("resume_ckpt"))
      throw ConfigError("{}: it selects a checkpoint to resume from; pass --resume_ckpt, or remove it",
                        state.text(flag));
  }
  if (whole_value(state, "load_epoch", 0, 0) > 0)
    state.plan.notes.push_back(
        fmt::format("{} is ignored: --load_step selects the checkpoint", state.text("load_epoch")));
  if (!state.is_true("resume_ckpt")) return;
  const Path folder = checkpoint_folder(state);
  const auto there = checkpoint_format::list_checkpoints(folder);
  const auto found = step == 0 && !there.empty()
                         ? there.end() - 1
                         : std::ranges::find(there, step, &checkpoint_format::Checkpoint::step);
  if (found != there.end())
    return state.set_for(step == 0 ? "resume_ckpt" : "load_step", "resume", quoted(found->path.string()));
  std::vector<int64_t> steps;
  for (const auto& checkpoint : there) steps.push_back(checkpoint.step);
  throw ConfigError("{}: there is no {} in {}; {}", state.text(step == 0 ? "resume_ckpt" : "load_step"),
                    step == 0 ? std::string("checkpoint") : fmt::format("checkpoint of step {}", step),
                    folder.string(),
                    steps.empty() ? std::string("--save_checkpoint saves some")
                                  : fmt::format("it has those of steps {}", fmt::join(steps, ", ")));
}

// The tokenizer that --model_name names, else that of a corpus, else that of the model.
void use_tokenizer(ScriptState& state, const Path& data) {
  if (state.has("model_name"))
    return state.set_for("model_name", "tokenizer.path", quoted(state.value("model_name", "")));
  if (is_there(data / "corpus.json"))
    return state.set_for("data_dir", "tokenizer.path", quoted((data / "tokenizer").string()));
  const std::string weights = given_name(state, "pretrained_weight", "pretrained_ckpt"),
                    flag = state.has(weights) ? weights : "model_path";
  state.set_for(flag, "tokenizer.path", quoted(folder_of(state.given.at(flag)).string()));
}

}  // namespace

void use_llama_model(ScriptState& state) {
  const std::string weights = given_name(state, "pretrained_weight", "pretrained_ckpt");
  const int64_t layers = count_value(state, "num_layers"), width = count_value(state, "hidden_size");
  if (!state.has(weights)) {
    require_flag(state, "model_path", "(a folder with a config.json, or the file)");
    const Path file = config_of(state, "model_path");
    if (layers > 0 || width > 0) return use_changed_config(state, file, layers, width);
    return state.set_for("model_path", "model.config", quoted(file.string()));
  }
  for (const char* flag : {"num_layers", "hidden_size"}) {
    if (count_value(state, flag) > 0)
      throw ConfigError("{}: the weights of {} have their own sizes; remove one of them", state.text(flag),
                        state.text(weights));
  }
  const Path file = config_of(state, weights);
  if (state.has("model_path")) require_same_sizes(state, weights, file, config_of(state, "model_path"));
  state.set_for(weights, "model.path", quoted(folder_of(file).string()));
}

void use_llama_data(ScriptState& state, LlamaPlan& plan) {
  require_flag(state, "data_dir", "(a corpus of stretto data tokenize, or a file of text)");
  const Path data = state.given.at("data_dir");
  if (data.filename() == "corpus.json")
    throw ConfigError("{}: it is a file of a corpus; pass its folder", state.text("data_dir"));
  use_tokenizer(state, data);
  const int64_t length = whole_value(state, "seq_len", llama_defaults(state).seq_len, 2);
  for (const char* flag : {"data_dir", "validation_dir"}) {
    if (!state.has(flag) || !has_saved_ids(state, flag)) continue;
    state.set_for(flag, "data.text", "input_ids");
    plan.blocks.push_back({state.given.at(flag), state.text(flag), length});
  }
  state.recipe.set_flag(fmt::format("--seq_len {}", length));
  state.recipe.set("data.max_length", std::to_string(length));
  state.recipe.set_flag("");
  state.recipe.set("causal_lm.blocks", "stream");
  state.plan.evaluate = state.is_true("do_eval");
  if (state.has("validation_dir"))
    state.set_for("validation_dir", "data.validation", quoted(state.value("validation_dir", "")));
  if (is_instruction(first_record(data))) {
    const Path cache = state.plan.output_dir / "cache";
    InstructionFile file = {data, state.value("task", ""), cache / "train.jsonl", cache / "test.jsonl"};
    state.set_for("data_dir", "data.train", quoted(file.train.string()));
    if (state.plan.evaluate) state.set_for("data_dir", "data.test", quoted(file.test.string()));
    plan.instructions = std::move(file);
    return;
  }
  if (state.has("task") && !is_there(data))
    throw ConfigError(
        "{}: it does not exist; data sets are not downloaded: pass a .jsonl file of its records",
        state.text("data_dir"));
  if (state.has("task"))
    throw ConfigError(
        "{}: {} has no records with \"instruction\", \"response\" and \"category\", of which it selects some; expected a .jsonl file of them, or no --task",
        state.text("task"), state.text("data_dir"));
  state.set_for("data_dir", "data.train", quoted(data.string()));
  if (state.plan.evaluate) {
    require_flag(state, "validation_dir", "by --do_eval (a corpus, or a file of text)");
    state.set_for("validation_dir", "data.test", quoted(state.value("validation_dir", "")));
  }
}

void use_llama_checkpoints(ScriptState& state) {
  use_loaded_step(state);
  if (!state.is_true("save_checkpoint")) {
    state.recipe.set("checkpoint.every", "never");
    for (const char* flag : {"num_kept_checkpoint", "checkpoint_freq"})
      if (state.has(flag))
        state.plan.notes.push_back(fmt::format("--{} has no effect without --save_checkpoint", flag));
    return;
  }
  const int64_t kept = whole_value(state, "num_kept_checkpoint", 10000, -1);
  if (kept == 0)
    throw ConfigError(
        "{}: no checkpoint would be kept; pass a number from 1 (or -1 for all), or remove "
        "--save_checkpoint",
        state.text("num_kept_checkpoint"));
  set_value(state, "checkpoint_freq", "checkpoint.every", "100000");
  state.recipe.set("checkpoint.keep_last", std::to_string(std::max<int64_t>(kept, 0)));
  if (state.has("output_dir") && state.has("checkpoint_dir"))
    state.plan.notes.push_back(
        fmt::format("checkpoints are saved in {}; {} is searched by --resume_ckpt only",
                    (state.plan.output_dir / "checkpoints").string(), state.text("checkpoint_dir")));
}

}  // namespace stretto::compat
