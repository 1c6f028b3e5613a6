#include "stretto/programs/stretto/plan_script.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stretto/base/enum_names.h"
#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/base/temp_folder.h"
#include "stretto/cluster/machine/machine.h"
#include "stretto/compat/llama_job.h"
#include "stretto/launch/launch.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/heads.h"
#include "stretto/model_config/llama.h"
#include "stretto/model_config/outline.h"
#include "stretto/programs/arguments/doctor_report.h"
#include "stretto/programs/arguments/memory_need.h"
#include "stretto/programs/stretto/rank_program.h"
#include "stretto/programs/stretto/table.h"
#include "stretto/strategy/decoder_cost.h"

namespace stretto::cli {
namespace {

using arguments::DoctorReport;
using arguments::PlanArguments;
using compat::LlamaJob;

// The variables of the script that the command line sets.
std::map<std::string, std::string> given_variables(const PlanArguments& arguments) {
  std::map<std::string, std::string> given;
  for (const std::string& word : arguments.recipe.overrides) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const bool is_name =
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
        std::string::npos;
    if (equals == std::string::npos || name.empty() || !is_name)
      throw ConfigError("plan: \"{}\" is no variable of a job script; expected NAME=VALUE", word);
    given[name] = word.substr(equals + 1);
  }
  const int nodes = arguments.recipe.launch.hosts.nodes;
  if (nodes > 0 && given.try_emplace("SLURM_NTASKS", std::to_string(nodes)).second)
    given.try_emplace("SLURM_NODEID", "0");
  return given;
}

LlamaConfig config_of(const LlamaJob& job) {
  nlohmann::json json = read_config_json(job.config);
  if (job.layers > 0) json["num_hidden_layers"] = job.layers;
  if (job.width > 0) json["hidden_size"] = job.width;
  return LlamaConfig::from_json(json, job.config.string());
}

DecoderSizes sizes_of(const LlamaConfig& config) {
  DecoderSizes sizes = {.layers = config.num_hidden_layers,
                        .width = config.hidden_size,
                        .inner = config.intermediate_size,
                        .query_width = config.num_attention_heads * config.head_dim,
                        .key_width = config.num_key_value_heads * config.head_dim,
                        .key_heads = config.num_key_value_heads};
  const ModelOutline outline = config.outline(heads::causal_language_model).value();
  for (const OutlineParameter& parameter : outline.parameters()) {
    if (parameter.block.empty()) {
      (parameter.is_table ? sizes.first : sizes.last) += parameter.elements();
      sizes.head_products += parameter.products;
    } else {
      sizes.layer += parameter.elements();
      sizes.layer_products += parameter.products;
    }
  }
  sizes.layer /= std::max<int64_t>(1, sizes.layers);
  sizes.layer_products /= std::max<int64_t>(1, sizes.layers);
  return sizes;
}

// The rates of a host: given ones, those of a file, or measured on this machine.
struct Rates {
  DecoderRates rates;
  double memory = 0;  // bytes
  std::string source;
};

DoctorReport measure_here() {
  const TempFolder folder;
  const std::filesystem::path file = folder.path() / "report";
  log::info("measuring this machine, as stretto doctor does:");
  const launch::LaunchOptions options{.command = rank_command({"doctor", "--report", file.string()}),
                                      .ranks = std::min(2, machine::read_machine().cores)};
  if (const int code = launch::run(options); code != 0) throw Error("stretto doctor ended with {}", code);
  return arguments::read_doctor_report(file);
}

Rates rates_of(const PlanArguments& arguments, const LlamaJob& job) {
  const bool needs_figures = arguments.gflops == 0 || arguments.copy_gb == 0;
  DoctorReport report;
  Rates rates = {.rates = {}, .memory = 0, .source = "all given"};
  if (!arguments.rates.empty()) {
    report = arguments::read_doctor_report(arguments.rates);
    rates.source = fmt::format("of {} where not given", arguments.rates.string());
  } else if (needs_figures) {
    report = measure_here();
    rates.source = "measured here where not given";
  }
  const machine::Machine machine = machine::read_machine();
  const double measured =
      is_half(job.precision) && report.bf16_gflops > 0 ? report.bf16_gflops : report.fp32_gflops;
  HardwareRates& host = rates.rates.host;
  host.cores = arguments.cores > 0 ? arguments.cores : report.cores > 0 ? report.cores : machine.cores;
  host.memory = 1e9 * (arguments.copy_gb > 0 ? arguments.copy_gb : report.copy_gb_per_s * report.ranks);
  host.network = arguments.network_gbit * 1e9 / 8;
  rates.rates.operations = 1e9 * (arguments.gflops > 0 ? arguments.gflops : measured);
  rates.rates.reached = arguments.reached.value_or(0.7);
  rates.memory = arguments.memory_gib > 0 ? arguments.memory_gib * 1024 * 1024 * 1024
                 : report.memory > 0      ? report.memory
                                          : machine.memory_available;
  return rates;
}

// A line of the table.
struct Row {
  LlamaJob job;
  DecoderForecast forecast;
  double per_host = 0;
};

Row row_of(const LlamaJob& job, const DecoderSizes& sizes, const DecoderRates& rates) {
  const DecoderBatch batch = {.sequences = job.sequences,
                              .length = job.length,
                              .micro_batches = job.micro_batches,
                              .recomputes = job.recomputes};
  const DecoderJob on = {.ranks = static_cast<int>(job.hosts * job.ranks_per_host),
                         .ranks_per_host = static_cast<int>(job.ranks_per_host),
                         .tp = static_cast<int>(job.tp),
                         .pp = static_cast<int>(job.pp),
                         .divides_rows = job.divides_rows,
                         .precision = job.precision};
  Row row = {.job = job,
             .forecast = forecast_decoder(sizes, batch, on, find_sharding(job.strategy), rates,
                                          static_cast<int64_t>(arguments::library_memory()))};
  row.per_host = static_cast<double>(row.forecast.bytes()) * static_cast<double>(job.ranks_per_host);
  return row;
}

// The job under each strategy; one with stages also as stretto can run it. If the ranks of a layer do not
// divide rows and nothing fits into the host's `memory` bytes: also the job with divided rows.
std::vector<Row> rows_of_strategies(const LlamaJob& job, const DecoderSizes& sizes, const DecoderRates& rates,
                                    double memory) {
  std::vector<LlamaJob> meshes = {job};
  if (job.pp > 1) meshes.push_back(job.arranged(job.hosts, job.ranks_per_host, job.tp, 1));
  std::vector<Row> rows;
  for (LlamaJob& mesh : meshes) {
    for (const Sharding& row : shardings()) {
      if (row.hybrid && (mesh.hosts == 1 || mesh.tp * mesh.pp >= mesh.ranks_per_host)) continue;  // fsdp
      mesh.strategy = row.name;
      rows.push_back(row_of(mesh, sizes, rates));
    }
  }
  const auto fits = [&](const Row& row) { return row.per_host <= memory; };
  if (job.tp == 1 || job.divides_rows || std::ranges::any_of(rows, fits)) return rows;
  LlamaJob with_rows = job;
  with_rows.divides_rows = true;
  for (Row& row : rows_of_strategies(with_rows, sizes, rates, memory)) rows.push_back(std::move(row));
  return rows;
}

std::vector<Row> rows_of_hosts(const PlanArguments& arguments, const LlamaJob& job, const DecoderSizes& sizes,
                               const DecoderRates& rates) {
  std::vector<Row> rows;
  for (const int64_t hosts : arguments.scale) {
    rows.push_back(row_of(job.arranged(hosts, job.ranks_per_host, job.tp, job.pp), sizes, rates));
  }
  return rows;
}

std::string mesh_text(const LlamaJob& job) {
  return fmt::format("tp {}{} x dp {}", job.tp, job.pp > 1 ? fmt::format(" x pp {}", job.pp) : "",
                     job.groups());
}

// A number in a column of numbers.
std::string cell(double number) {
  if (number >= 1000) return fmt::format("{:.0f}", number);
  return number >= 0.01 ? fmt::format("{:.3g}", number) : fmt::format("{:.1g}", number);
}

double tokens_per_second(const Row& row) {
  return static_cast<double>(row.job.global_batch() * row.job.length) / row.forecast.seconds();
}

// The rows of one mesh (`by_hosts`: of one strategy).
void print_rows(std::span<const Row> rows, double memory, bool by_hosts) {
  constexpr double gib = 1024.0 * 1024 * 1024;
  std::vector<Cells> cells = {{by_hosts ? "hosts" : "strategy", "dp", "rank", "host", "step", "compute",
                               "copies", "layers", "network", "sent", "fits"}};
  for (const Row& row : rows) {
    const DecoderForecast& forecast = row.forecast;
    cells.push_back({by_hosts ? std::to_string(row.job.hosts) : row.job.strategy,
                     std::to_string(row.job.groups()), cell(static_cast<double>(forecast.bytes()) / gib),
                     cell(row.per_host / gib), cell(forecast.seconds()), cell(forecast.step.compute),
                     cell(forecast.step.memory), cell(forecast.layers_memory + forecast.layers_network),
                     cell(forecast.step.network), cell((forecast.step.sent + forecast.layers_sent) / gib),
                     row.per_host <= memory ? "yes" : "no"});
  }
  print_table(cells, /*numbers_right=*/true);
}

// A table per mesh.
void print_tables(const std::vector<Row>& rows, double memory, bool by_hosts) {
  for (auto begin = rows.begin(); begin != rows.end();) {
    const auto end = std::find_if(begin, rows.end(), [&](const Row& row) {
      return row.job.pp != begin->job.pp || row.job.divides_rows != begin->job.divides_rows;
    });
    const bool is_proposed = begin->job.divides_rows && !rows.front().job.divides_rows;
    fmt::print("\ntp {}{}{}{}\n", begin->job.tp,
               begin->job.pp > 1 ? fmt::format(" x pp {}, on paper only", begin->job.pp) : "",
               is_proposed ? ", with --sequence-parallel" : "", by_hosts ? ", " + begin->job.strategy : "");
    print_rows({begin, end}, memory, by_hosts);
    begin = end;
  }
}

nlohmann::ordered_json to_json(const Row& row, double memory) {
  const DecoderForecast& forecast = row.forecast;
  return {{"hosts", row.job.hosts},
          {"tp", row.job.tp},
          {"pp", row.job.pp},
          {"dp", row.job.groups()},
          {"sequence_parallel", row.job.divides_rows},
          {"strategy", row.job.strategy},
          {"micro_batches", row.job.micro_batches},
          {"bytes_per_rank", forecast.bytes()},
          {"bytes_per_host", static_cast<int64_t>(row.per_host)},
          {"fits", row.per_host <= memory},
          {"parameters", forecast.parameters.total()},
          {"activations", forecast.activations},
          {"step_seconds", forecast.seconds()},
          {"compute_seconds", forecast.step.compute},
          {"memory_seconds", forecast.step.memory},
          {"layers_seconds", forecast.layers_memory + forecast.layers_network},
          {"network_seconds", forecast.step.network},
          {"network_bytes_per_host", forecast.step.sent + forecast.layers_sent},
          {"tokens_per_second", tokens_per_second(row)}};
}

// How many hosts like this machine hold the job, with as many ranks as cores.
std::string needed_here(LlamaJob job, const DecoderSizes& sizes, const DecoderRates& rates) {
  const machine::Machine machine = machine::read_machine();
  const std::string here = fmt::format("this machine has {} and {} available;\n",
                                       counted(machine.cores, "core"), human_bytes(machine.memory_available));
  job.micro_batches *= job.sequences;
  job.sequences = 1;
  job.strategy = "fsdp";
  int64_t tp = std::min<int64_t>(job.tp, machine.cores);
  while (machine.cores % tp != 0) --tp;
  constexpr int64_t most_hosts = 4096;
  for (int64_t hosts = 1; hosts <= most_hosts; hosts *= 2) {
    LlamaJob on;
    try {
      on = job.arranged(hosts, machine.cores, tp, 1);
    } catch (const ConfigError&) {  // the groups cannot share the sequences
      continue;
    }
    const Row row = row_of(on, sizes, rates);
    if (row.per_host <= machine.memory_available)
      return fmt::format("{}{} like it hold{} the job: {}, fsdp, {} per host", here, counted(hosts, "host"),
                         hosts == 1 ? "s" : "", mesh_text(on), human_bytes(row.per_host));
  }
  return here + "hosts like it cannot hold the job with its sequences per step, however many";
}

std::string batch_text(const LlamaJob& job) {
  return fmt::format(
      "{} sequences of {} tokens per step\n       = {} per group x {} x {}", job.global_batch(), job.length,
      job.sequences, counted(job.groups(), "group"),
      job.micro_batches == 1 ? "1 micro-batch" : fmt::format("{} micro-batches", job.micro_batches));
}

}  // namespace

void plan_script(const PlanArguments& arguments) {
  arguments::refuse_recipe_options(arguments);
  LlamaJob job = compat::read_llama_job(arguments.recipe.recipe, given_variables(arguments));
  for (const std::string& note : job.notes) log::info("{}", note);
  const int nodes = arguments.recipe.launch.hosts.nodes, ranks = arguments.recipe.launch.ranks;
  const bool has_tp = arguments.recipe.tp > 0;
  job = job.arranged(nodes > 0 ? nodes : job.hosts, ranks > 0 ? ranks : job.ranks_per_host,
                     has_tp ? arguments.recipe.tp : job.tp, has_tp ? 1 : job.pp);
  if (has_tp)  // without stages
    std::erase_if(job.refused,
                  [](const std::string& flag) { return flag.starts_with("--pipeline_parallel_size"); });
  if (arguments.recipe.sequence_parallel) job.divides_rows = true;
  if (!arguments.recipe.strategy.empty()) job.strategy = find_sharding(arguments.recipe.strategy).name;
  const LlamaConfig config = config_of(job);
  if (!config.outline(heads::causal_language_model)->divides_among(job.tp))
    throw ConfigError("{}: tp {}: the {} of each layer cannot be divided among {} evenly",
                      job.config.string(), job.tp, counted(config.num_attention_heads, "head"),
                      counted(job.tp, "rank"));
  const DecoderSizes sizes = sizes_of(config);
  const Rates rates = rates_of(arguments, job);
  const std::vector<Row> rows = arguments.scale.empty()
                                    ? rows_of_strategies(job, sizes, rates.rates, rates.memory)
                                    : rows_of_hosts(arguments, job, sizes, rates.rates);
  if (arguments.json) {
    nlohmann::ordered_json json = {{"parameters", sizes.elements()},
                                   {"memory_per_host", rates.memory},
                                   {"rows", nlohmann::ordered_json::array()}};
    for (const Row& row : rows) json["rows"].push_back(to_json(row, rates.memory));
    std::cout << json.dump(2) << "\n";
    return;
  }
  fmt::print("job    {} on {}: {}, {}{}\n", counted(job.ranks_per_host * job.hosts, "rank"),
             counted(job.hosts, "host"), mesh_text(job), name_of(job.precision),
             job.recomputes ? ", layers recomputed in backward" : "");
  fmt::print("model  {:.2f} billion parameters: {} of width {}\n",
             static_cast<double>(sizes.elements()) / 1e9, counted(sizes.layers, "layer"), sizes.width);
  fmt::print("batch  {}\n", batch_text(job));
  fmt::print(
      "rates  per host: {} of {:.1f} GFLOP/s, of which a step reaches {:.0f} %,\n"
      "       {:.1f} GB/s copied, {:.0f} Gbit/s to others, {};\n"
      "       {}\n"
      "units  GiB per rank and host, seconds per step and its parts, GiB sent per host\n",
      counted(rates.rates.host.cores, "core"), rates.rates.operations / 1e9, 100 * rates.rates.reached,
      rates.rates.host.memory / 1e9, rates.rates.host.network * 8 / 1e9, human_bytes(rates.memory),
      rates.source);
  print_tables(rows, rates.memory, !arguments.scale.empty());
  if (!job.refused.empty() || arguments.scale.empty()) fmt::print("\n");
  for (const std::string& reason : job.refused) fmt::print("refused by stretto run-llama: {}\n", reason);
  if (arguments.scale.empty()) fmt::print("{}\n", needed_here(job, sizes, rates.rates));
}

}  // namespace stretto::cli
