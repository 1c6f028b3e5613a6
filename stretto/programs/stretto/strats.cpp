#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/programs/stretto/verbs.h"
#include "stretto/strategy/sharding.h"
#include "stretto/strategy/strategy.h"

namespace stretto::cli {
namespace {

struct StratsVerb {
  std::string name;
  bool ddp = false, fsdp = false, deepspeed = false, json = false;
};

const char* word(Held held) { return held == Held::sharded ? "sharded" : "replicated"; }

// Bytes per parameter of each kind of memory with AdamW: two moments, and fp32 master weights in bf16.
struct ElementBytes {
  int64_t parameters, gradients, optimizer;
};
constexpr ElementBytes fp32_bytes = {4, 4, 8}, bf16_bytes = {2, 4, 12};

// The total of N ranks of a host per parameter: "12 + 4 N". Ranks of a host share the parameters if each rank
// updates its shard only.
std::string bytes_per_parameter(const Sharding& row, const ElementBytes& bytes) {
  int64_t once = 0, each = 0;
  const auto add = [&](Held held, int64_t size) { (held == Held::sharded ? once : each) += size; };
  add(row.optimizer, bytes.optimizer);
  add(row.gradients, bytes.gradients);
  add(row.optimizer, bytes.parameters);
  if (each == 0) return fmt::format("{}", once);
  return once == 0 ? fmt::format("{} N", each) : fmt::format("{} + {} N", once, each);
}

// The meaning of a name: "zero2, bf16", or the reason why this version refuses it.
nlohmann::ordered_json describe_name(const std::string& name) {
  nlohmann::ordered_json entry = {{"name", name}};
  try {
    const Strategy strategy = parse_strategy(name);
    entry["strategy"] = strategy.kind;
    if (strategy.precision) entry["precision"] = std::string(name_of(*strategy.precision));
    if (strategy.in_host_memory) entry["device"] = "cpu";
    if (strategy.optimizer_in_files) entry["optimizer"] = "files";
    if (strategy.parameters_in_files) entry["parameters"] = "files";
  } catch (const ConfigError& error) {
    entry["refused"] = error.what();
  }
  return entry;
}

nlohmann::ordered_json describe_names(const std::vector<std::string>& families) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const std::string& family : families) {
    for (const std::string& name : accmt_names(family)) list.push_back(describe_name(name));
  }
  return list;
}

nlohmann::ordered_json describe_row(const Sharding& row) {
  return {{"name", row.name},
          {"optimizer", word(row.optimizer)},
          {"gradients", word(row.gradients)},
          {"parameters", word(row.parameters)},
          {"bytes_per_parameter_fp32", bytes_per_parameter(row, fp32_bytes)},
          {"bytes_per_parameter_bf16", bytes_per_parameter(row, bf16_bytes)},
          {"also", strategy_aliases(row.name)}};
}

void print_rows(std::span<const Sharding> rows) {
  fmt::print("{:<9}{:<12}{:<12}{:<12}{:<22}\n{:<9}{:<12}{:<12}{:<12}{:<11}{}\n", "", "", "", "",
             "bytes per parameter*", "strategy", "optimizer", "gradients", "parameters", "fp32", "bf16");
  for (const Sharding& row : rows) {
    fmt::print("{:<9}{:<12}{:<12}{:<12}{:<11}{}\n", row.name, word(row.optimizer), word(row.gradients),
               row.parameters == Held::sharded ? "shared" : word(row.parameters),
               bytes_per_parameter(row, fp32_bytes), bytes_per_parameter(row, bf16_bytes));
  }
  fmt::print("* total of N ranks of one host, with AdamW; activations are extra\n");
}

void print_aliases() {
  fmt::print(
      "\nA precision may follow: zero2-fp32, zero2-bf16, zero2-fp16, zero2-fp64.\nNames of other tools that mean the same:\n");
  for (const Sharding& row : shardings()) {
    if (const auto names = strategy_aliases(row.name); !names.empty())
      fmt::print("  {:<7}{}\n", row.name, fmt::join(names, "\n         "));
  }
}

// "fsdp, bf16, on the CPU", or "not supported; use fsdp-bf16".
std::string meaning_of(const nlohmann::ordered_json& entry) {
  if (const auto refused = entry.find("refused"); refused != entry.end()) {
    const auto reason = refused->get<std::string>();
    const size_t instead = reason.rfind("; use ");
    return "not supported" + (instead == std::string::npos ? "" : reason.substr(instead));
  }
  std::string text = entry.at("strategy").get<std::string>();
  if (entry.contains("precision")) text += ", " + entry.at("precision").get<std::string>();
  if (entry.contains("device")) text += ", on the CPU";
  if (entry.contains("optimizer") && entry.contains("parameters")) return text + ", all in files";
  if (entry.contains("optimizer")) text += ", optimizer in files";
  if (entry.contains("parameters")) text += ", parameters in files";
  return text;
}

void print_name(const nlohmann::ordered_json& entry) {
  fmt::print("{:<27}{}\n", entry.at("name").get<std::string>(), meaning_of(entry));
}

// Throws ConfigError, with the names to use instead, if it is not the name of a strategy.
void show_one(const StratsVerb& arguments) {
  const Sharding& row = find_sharding(parse_strategy(arguments.name).kind);
  nlohmann::ordered_json entry = describe_name(arguments.name);
  if (arguments.json) {
    entry["sharding"] = describe_row(row);
    std::cout << entry.dump(2) << "\n";
    return;
  }
  print_name(entry);
  fmt::print("\n");
  print_rows({&row, 1});
}

void list_families(const StratsVerb& arguments) {
  std::vector<std::string> families;
  if (arguments.ddp) families.emplace_back("ddp");
  if (arguments.fsdp) families.emplace_back("fsdp");
  if (arguments.deepspeed) families.emplace_back("deepspeed");
  const bool whole = families.empty();
  if (whole) families = {"ddp", "fsdp", "deepspeed"};
  const nlohmann::ordered_json names = describe_names(families);
  if (arguments.json) {
    nlohmann::ordered_json result = names;
    if (whole) {
      result = {{"strategies", nlohmann::ordered_json::array()}, {"names", names}};
      for (const Sharding& row : shardings()) result["strategies"].push_back(describe_row(row));
    }
    std::cout << result.dump(2) << "\n";
    return;
  }
  if (whole) {
    print_rows(shardings());
    print_aliases();
    fmt::print("\nNames of accmt:\n");
  }
  for (const auto& entry : names) print_name(entry);
}

}  // namespace

void add_strats(CLI::App& app, int& exit_code) {
  CLI::App* verb =
      app.add_subcommand("strats", "List the strategies, what they shard, and their names elsewhere");
  auto arguments = std::make_shared<StratsVerb>();
  CLI::Option* name =
      verb->add_option("name", arguments->name, "Describe only the strategy of this name, of any tool");
  verb->add_flag("--ddp", arguments->ddp, "The names of accmt that begin with ddp")->excludes(name);
  verb->add_flag("--fsdp", arguments->fsdp, "... with fsdp")->excludes(name);
  verb->add_flag("--deepspeed", arguments->deepspeed, "... with deepspeed")->excludes(name);
  verb->add_flag("--json", arguments->json, "Print JSON");
  verb->callback([arguments, &exit_code] {
    arguments->name.empty() ? list_families(*arguments) : show_one(*arguments);
    exit_code = 0;
  });
}

}  // namespace stretto::cli
