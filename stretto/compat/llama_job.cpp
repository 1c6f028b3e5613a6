#include "stretto/compat/llama_job.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/strings.h"
#include "stretto/compat/job_script.h"
#include "stretto/compat/llama_flags.h"

namespace stretto::compat {
namespace {

using Words = std::vector<ShellWord>;

// The options of torchrun, and the program with its arguments.
struct Launch {
  std::map<std::string, ShellWord> options;  // by name, with underscores
  std::string program;
  Words arguments;
};

Launch divide(const JobCommand& command) {
  static const std::vector<std::string> without_value = {"standalone", "no_python", "module", "m",
                                                         "run_path",   "version",   "help"};
  Launch launch;
  for (size_t i = 1; i < command.words.size(); ++i) {
    const ShellWord& word = command.words[i];
    if (!word.text.starts_with('-')) {
      launch.program = word.text;
      launch.arguments.assign(command.words.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                              command.words.end());
      return launch;
    }
    const size_t equals = word.text.find('=');
    std::string name = word.text.substr(0, equals);
    name.erase(0, name.find_first_not_of('-'));
    std::ranges::replace(name, '-', '_');
    if (equals != std::string::npos) {
      launch.options[name] = {word.text.substr(equals + 1), word.unknown};
    } else if (std::ranges::find(without_value, name) == without_value.end() &&
               i + 1 < command.words.size()) {
      launch.options[name] = command.words[++i];
    }
  }
  return launch;
}

// The flags that the program gets, without those whose value is not known: an ignored flag may have one.
class Flags {
 public:
  explicit Flags(const Words& arguments) {
    std::vector<std::string> words;
    for (const ShellWord& word : arguments) {
      const bool is_flag = word.text.starts_with("--");
      const std::string name = is_flag         ? word.text.substr(0, word.text.find('='))
                               : words.empty() ? ""
                                               : words.back();
      if (!word.unknown.empty()) unknown_[name.starts_with("--") ? name.substr(2) : name] = word.unknown;
      words.push_back(word.unknown.empty() || is_flag ? word.text : "0");
      if (word.text.empty() && word.unknown.empty()) words.back() = "None";
    }
    state_.given = parse_flags(llama_flags(), words);
  }

  const ScriptState& known(const std::string& flag) const {
    const auto found = unknown_.find(flag);
    if (found == unknown_.end()) return state_;
    throw ConfigError("--{}: its value is not known ({}); give the variable as NAME=VALUE after the script",
                      flag, found->second);
  }
  bool has(const std::string& flag) const { return known(flag).has(flag); }
  int64_t whole(const std::string& flag, int64_t unset, int64_t least = 1) const {
    return whole_value(known(flag), flag, unset, least);
  }
  int64_t count(const std::string& flag) const { return count_value(known(flag), flag); }
  bool is_true(const std::string& flag) const { return known(flag).is_true(flag); }
  std::string text(const std::string& flag) const { return known(flag).value(flag, ""); }
  LlamaDefaults defaults() const { return llama_defaults(state_); }
  bool divides_rows() const {
    known("sequence_parallel_enabled");
    return compat::divides_rows(known("use_sequence_parallel"));
  }

  // What stretto run-llama does not do.
  std::vector<std::string> refused() const {
    std::vector<std::string> all;
    for (const auto& [name, value] : state_.given) {
      if (unknown_.contains(name)) continue;
      ScriptState state{.script = Script::llama, .plan = {}, .recipe = {}, .given = state_.given};
      try {
        find_flag(llama_flags(), name).use(state, value);
      } catch (const ConfigError& error) {
        all.emplace_back(error.what());
      }
    }
    return all;
  }

 private:
  ScriptState state_{.script = Script::llama, .plan = {}, .recipe = {}, .given = {}};
  std::map<std::string, std::string> unknown_;
};

int64_t option(const Launch& launch, const char* name, int64_t unset) {
  const auto found = launch.options.find(name);
  if (found == launch.options.end()) return unset;
  if (!found->second.unknown.empty())
    throw ConfigError(
        "torchrun's --{}: its value is not known ({}); give the variable as NAME=VALUE after the script",
        name, found->second.unknown);
  const auto number = parse_int(found->second.text);
  if (!number || *number < 1 || *number > 1'000'000)
    throw ConfigError("torchrun's --{} {}: expected a whole number from 1", name, found->second.text);
  return *number;
}

// The config.json of --model_path, or of the folder of the script.
std::filesystem::path config_of(const Flags& flags, const std::filesystem::path& script) {
  std::string flag = "model_path";
  for (const char* weights : {"pretrained_weight", "pretrained_ckpt"})
    if (!flags.has(flag) && flags.has(weights)) flag = weights;
  const std::filesystem::path beside = script.parent_path();
  std::filesystem::path named = flags.has(flag) ? std::filesystem::path(flags.text(flag)) : beside;
  for (const std::filesystem::path& base : {std::filesystem::path(), beside}) {
    const std::filesystem::path at = base.empty() ? named : base / named;
    std::error_code failed;
    if (std::filesystem::is_regular_file(at, failed)) return at;
    if (std::filesystem::is_regular_file(at / "config.json", failed)) return at / "config.json";
  }
  throw ConfigError(
      "--{} {}: there is no config.json, neither there nor next to the script, whose sizes a plan needs (weights and data are not "
      "read); give the variable of the folder as NAME=FOLDER after the script",
      flag, named.string());
}

LlamaJob job_of(const JobCommand& command, const std::filesystem::path& script) {
  const Launch launch = divide(command);
  if (launch.program.find("llama") == std::string::npos)
    throw ConfigError(
        "torchrun starts {}; expected run_llama_nxd_ptl.py or the script for fine-tuning next to it",
        launch.program.empty() ? "nothing" : "\"" + launch.program + "\"");
  const Flags flags(launch.arguments);
  LlamaJob job;
  job.notes = command.notes;
  job.hosts = option(launch, "nnodes", 1);
  job.ranks_per_host = option(launch, "nproc_per_node", 1);
  const LlamaDefaults defaults = flags.defaults();
  job.tp = flags.whole("tensor_parallel_size", defaults.tensor_parallel_size);
  job.pp = flags.whole("pipeline_parallel_size", 1);
  const int64_t ranks = job.hosts * job.ranks_per_host;
  if (job.tp > ranks || job.pp > ranks || ranks % (job.tp * job.pp) != 0) {
    throw ConfigError(
        "--tensor_parallel_size {} and --pipeline_parallel_size {} need a multiple of {} ranks, but torchrun starts {} on {}; pass "
        "more hosts (--nodes) or ranks per host (-N)",
        job.tp, job.pp, job.tp * job.pp, ranks, counted(job.hosts, "host"));
  }
  const std::string batch = flags.has("batch_size") ? "batch_size" : "train_batch_size";
  job.sequences = flags.whole(batch, defaults.batch_size);
  job.micro_batches = flags.whole("grad_accum_usteps", defaults.grad_accum_usteps);
  if (job.pp > 1) {  // a pipeline divides --train_batch_size into micro-batches
    const int64_t parts = flags.whole("num_microbatches", 8);
    if (job.sequences % parts != 0)
      throw ConfigError("--num_microbatches {}: it does not divide --{} {}", parts, batch, job.sequences);
    job.sequences /= parts;
    job.micro_batches *= parts;
  }
  job.length = flags.whole("seq_len", defaults.seq_len, 2);
  job.recomputes =
      !flags.is_true("use_selective_checkpoint") && !flags.is_true("selective_checkpoint_enabled");
  job.divides_rows = flags.divides_rows();
  if (flags.is_true("use_zero1_optimizer") || flags.is_true("use_zero_1")) job.strategy = "zero1";
  if (flags.has("precision")) {
    const std::string precision = flags.text("precision");
    job.precision = parse_precision(precision);
  }
  job.layers = flags.count("num_layers");
  job.width = flags.count("hidden_size");
  job.refused = flags.refused();
  job.config = config_of(flags, script);
  for (const RoundedQuotient& quotient : command.rounded)
    job.notes.push_back(
        fmt::format("{}; a step of this job has {}", quotient.text, counted(job.global_batch(), "sequence")));
  return job;
}

}  // namespace

LlamaJob LlamaJob::arranged(int64_t on_hosts, int64_t on_ranks_per_host, int64_t with_tp,
                            int64_t with_pp) const {
  const int64_t ranks = on_hosts * on_ranks_per_host, together = with_tp * with_pp;
  if (ranks % together != 0)
    throw ConfigError(
        "{} on {} cannot be divided into groups of {} (tp {}{}); pass a --tp that divides them, or another --nodes or -N",
        counted(ranks, "rank"), counted(on_hosts, "host"), together, with_tp,
        with_pp > 1 ? fmt::format(" x pp {}", with_pp) : "");
  LlamaJob job = *this;
  job.hosts = on_hosts;
  job.ranks_per_host = on_ranks_per_host;
  job.tp = with_tp;
  job.pp = with_pp;
  const int64_t global = global_batch(), at_once = job.sequences * job.groups();
  if (global % at_once != 0)
    throw ConfigError(
        "{} of ranks cannot share the {} of a step evenly, {} at a time; use a larger tp, or fewer hosts",
        counted(job.groups(), "group"), counted(global, "sequence"), job.sequences);
  job.micro_batches = global / at_once;
  return job;
}

LlamaJob read_llama_job(const std::filesystem::path& script,
                        const std::map<std::string, std::string>& given) {
  const JobCommand command = read_job_script(script, given);
  try {
    return job_of(command, script);
  } catch (const ConfigError& error) {
    std::string cause;
    for (const RoundedQuotient& quotient : command.rounded)
      if (quotient.value == 0) cause = fmt::format(" ({})", quotient.text);
    throw ConfigError("{}:{}: {}{}", script.string(), command.line, error.what(), cause);
  }
}

}  // namespace stretto::compat
