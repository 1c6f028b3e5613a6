#include <map>
#include <memory>
#include <optional>

#include "stretto/base/error.h"
#include "stretto/base/progress_bar.h"
#include "stretto/base/strings.h"
#include "stretto/programs/stretto/find_checkpoints.h"
#include "stretto/programs/stretto/verbs.h"
#include "stretto/weights/export.h"
#include "stretto/weights/import.h"
#include "stretto/weights/model_folder.h"
#include "stretto/weights/shards.h"
#include "stretto/weights/weight_files.h"

namespace stretto::cli {
namespace {

struct ConvertArguments {
  std::filesystem::path from, to;
  std::optional<std::filesystem::path> state, like;
  std::string max_shard_size;
  std::optional<std::string> dtype;
};

// The name of torch for a name of stretto: "bfloat16" for "bf16"; others unchanged.
std::string torch_name(const std::string& dtype) {
  static const std::map<std::string, std::string> names = {
      {"fp32", "float32"}, {"bf16", "bfloat16"}, {"fp16", "float16"}, {"fp64", "float64"}};
  const auto found = names.find(dtype);
  return found == names.end() ? dtype : found->second;
}

bool is_model_folder(const std::filesystem::path& folder) {
  return std::filesystem::is_directory(folder) && weights::has_weight_files(folder) &&
         !std::filesystem::exists(folder / checkpoint_format::manifest_name);
}

void print_result(const std::filesystem::path& from, const std::filesystem::path& to, int64_t bytes) {
  fmt::print("{} -> {} ({})\n", from.string(), to.string(), human_bytes(static_cast<double>(bytes)));
}

void to_model(const ConvertArguments& arguments) {
  if (arguments.state)
    throw ConfigError("--state: it applies to model folders, but {} is a checkpoint",
                      arguments.from.string());
  const checkpoint_format::Checkpoint checkpoint = find_checkpoints(arguments.from).back();
  weights::ExportOptions options = {.like = arguments.like};
  options.dtype = arguments.dtype;
  const int64_t bytes =
      weights::model_bytes(checkpoint_format::read_manifest(checkpoint.path), options.dtype);
  if (!arguments.max_shard_size.empty())
    options.max_shard_bytes = weights::parse_size(arguments.max_shard_size);
  ProgressBar progress("writing the model", bytes, "bytes");
  weights::export_model(checkpoint.path, arguments.to, options,
                        [&](int64_t written) { progress.add(written); });
  print_result(checkpoint.path, arguments.to, bytes);
}

// Whether a model folder has pytorch_model.bin instead of safetensors.
bool is_pickled(const std::filesystem::path& folder) {
  return std::filesystem::is_directory(folder) && !weights::has_weight_files(folder) &&
         weights::has_pickled_weights(folder);
}

// Whether a model folder is written as another one, with safetensors of another type or size.
bool is_rewritten(const ConvertArguments& arguments) {
  return is_model_folder(arguments.from) && !arguments.state &&
         (arguments.dtype || !arguments.max_shard_size.empty());
}

void to_safetensors(const ConvertArguments& arguments) {
  for (const auto& [name, given] :
       {std::pair("--like", arguments.like.has_value()), {"--state", arguments.state.has_value()}}) {
    if (given && is_pickled(arguments.from))
      throw ConfigError("{}: it does not apply to pytorch_model.bin, which {} has; convert that file first",
                        name, arguments.from.string());
    if (given)
      throw ConfigError("{}: it applies to checkpoints, but {} is a model folder", name,
                        arguments.from.string());
  }
  const int64_t most = arguments.max_shard_size.empty() ? weights::ExportOptions().max_shard_bytes
                                                        : weights::parse_size(arguments.max_shard_size);
  const weights::ModelFolder model(arguments.from);
  const int64_t bytes = model.bytes(arguments.dtype);
  ProgressBar progress("writing the model", bytes, "bytes");
  model.write(arguments.to, most, arguments.dtype, [&](int64_t written) { progress.add(written); });
  print_result(arguments.from, arguments.to, bytes);
}

void to_checkpoint(const ConvertArguments& arguments) {
  if (!arguments.state) {
    throw ConfigError(
        "{} is a model folder: a new run starts from it with model.path, without conversion; to continue a run with these weights, pass the checkpoint with the rest of its state as --state CHECKPOINT; to write the folder with weights of another type or with other files, pass --dtype or --max-shard-size",
        arguments.from.string());
  }
  for (const auto& [name, given] : {std::pair("--like", arguments.like.has_value()),
                                    {"--max-shard-size", !arguments.max_shard_size.empty()},
                                    {"--dtype", arguments.dtype.has_value()}}) {
    if (given)
      throw ConfigError("{}: it applies to checkpoints, but {} is a model folder", name,
                        arguments.from.string());
  }
  const checkpoint_format::Checkpoint state = find_checkpoints(*arguments.state).back();
  const int64_t bytes = weights::checkpoint_bytes(checkpoint_format::read_manifest(state.path));
  ProgressBar progress("writing the checkpoint", bytes, "bytes");
  weights::import_model(arguments.from, state.path, arguments.to,
                        [&](int64_t written) { progress.add(written); });
  print_result(arguments.from, arguments.to, bytes);
}

}  // namespace

void add_convert(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand(
      "convert",
      "Write the model of a checkpoint as a Hugging Face folder, or a model's weights into a checkpoint; or a model folder as safetensors of another type");
  auto arguments = std::make_shared<ConvertArguments>();
  verb->add_option(
          "from", arguments->from,
          "A checkpoint, or the output folder of a run (its newest checkpoint); or a model folder, with safetensors or pytorch_model.bin")
      ->required()
      ->type_name("FROM");
  verb->add_option("to", arguments->to, "The folder to write, which must not exist")
      ->required()
      ->type_name("TO");
  verb->add_option("--max-shard-size", arguments->max_shard_size,
                   "Largest size of a weight file, such as 500MB or 2GiB (default: 5GB)")
      ->type_name("SIZE");
  verb->add_option(
          "--dtype", arguments->dtype,
          "Data type of the weights: fp32, bf16, fp16 or fp64, or torch's name (default: as they are stored)")
      ->type_name("DTYPE")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16", "fp64", "float32", "bfloat16", "float16", "float64"}));
  verb->add_option("--like", arguments->like,
                   "Model folder to copy config.json and the tokenizer from (default: those of the run)")
      ->type_name("FOLDER");
  verb->add_option("--state", arguments->state,
                   "For a model folder: the checkpoint from which everything but the weights is taken")
      ->type_name("CHECKPOINT");
  verb->callback([arguments, &exit_code] {
    ConvertArguments given = *arguments;
    if (given.dtype) given.dtype = torch_name(*given.dtype);
    if (is_pickled(given.from) || is_rewritten(given)) {
      to_safetensors(given);
    } else if (is_model_folder(given.from)) {
      to_checkpoint(given);
    } else {
      to_model(given);
    }
    exit_code = 0;
  });
}

}  // namespace stretto::cli
