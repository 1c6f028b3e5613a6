#include "tests/messages/mistakes.h"
#include <fmt/format.h>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/config/evaluation.h"
#include "stretto/config/model_json.h"
#include "stretto/config/recipe.h"
#include "stretto/config/topology_request.h"
#include "stretto/optim_config/optimizer_registry.h"
#include "stretto/optim_config/schedule_registry.h"
#include "stretto/strategy/strategy.h"

namespace stretto {
namespace {

void add_strategies(Mistakes& all) {
  for (const char* name : {"horovod", "ddp-fp8", "ddp-bf61", "ddp-bf16-cpu", ""})
    all.push_back({fmt::format("strategy: \"{}\"", name), [name] { parse_strategy(name); }});
}

void add_keys(Mistakes& all) {
  const auto add = [&](const char* name, const std::string& yaml, const std::vector<std::string>& set = {}) {
    all.push_back({std::string("recipe: ") + name, [=] { parse_recipe(yaml, "r.yaml", set); }});
  };
  const std::string task = "task: text-classification\n";
  add("--set: not a number", task, {"optimizer.lr=abc"});
  add("--set: an unknown section", task, {"optimiser.lr=1"});
  add("--set: an unknown key", task, {"optimizer.lrr=null"});
  add("--set: a value for a section", task, {"optimizer=AdamW"});
  add("--set: a key without its section", task, {"lr=1e-3"});
  add("--set: a key below a value", "output: a\n", {"output.b=1"});
  add("--set: neither a number nor true", task, {"training.fast_dev_run=maybe"});
  add("a key of another optimizer", "optimizer:\n  momentum: 0.9\n");
  add("an unknown optimizer", "optimizer:\n  type: AdamX\n");
  add("a section of another task", "data: {}\ntoken_classification:\n  stride: 8\n");
  add("--set: a section of another task", "task: token-classification\n",
      {"question_answering.doc_stride=8"});
  add("not UTF-8", "output: runs/\xff\n");
  add("strategy and precision contradict", "training:\n  precision: fp32\n  strategy: ddp-bf16\n");
  add("a key of another strategy", "training:\n  strategy: fsdp\n  dp_shard: 2\n");
  add("a strategy that is not available", "training:\n  strategy: fsdp2\n");
  add("16-true", "training:\n  precision: 16-true\n");
  add("bf16-true", "training:\n  precision: bf16-true\n");
  add("an unknown precision", "training:\n  precision: bf61\n");
  add("out of range", "training:\n  epochs: 0\n");
  add("an unknown key", "training:\n  epoch: 2\n");
  all.push_back({"recipe: a comma at the end of JSON",
                 [] { parse_recipe("{\"training\": {\"epochs\": 2,}}", "r.json"); }});
  add("a key that occurs twice", "output: a\noutput: b\n");
  add("tabs in the indentation", "training:\n\tepochs: 2\n");
  add("a list for a text", "output: [a]\n");
  add("a variable that is not set", "output: ${STRETTO_NO_SUCH_VARIABLE}\n");
}

// Adds mistakes in a model.config that is a section.
void add_model_sections(Mistakes& all) {
  const auto add = [&](const char* name, const std::string& model, const std::string& task = "causal-lm") {
    all.push_back({std::string("model: ") + name, [=] {
                     check_model_section(parse_recipe("task: " + task + "\nmodel:\n" + model, "r.yaml"));
                   }});
  };
  const std::string llama = "  type: llama\n  config:\n";
  add("an unknown key", llama + "    hidden_siez: 64\n");
  add("a word for a size", llama + "    hidden_size: small\n");
  add("a size that the heads do not divide", llama + "    hidden_size: 64\n    num_attention_heads: 3\n");
  add("heads that do not divide the default size", llama + "    num_attention_heads: 3\n");
  add("too many layers", llama + "    num_hidden_layers: 100000\n");
  add("an empty value", llama + "    hidden_size:\n    num_hidden_layers: 2\n");
  add("null for a size", llama + "    hidden_size: null\n");
  add("scaled positions without a factor", llama + "    rope_scaling: {rope_type: linear}\n");
  add("two types", "  type: llama\n  config: {model_type: gpt2}\n");
  add("no type", "  config: {hidden_size: 8}\n");
  add("a type that needs a file", "  config: {model_type: bert}\n");
  add("a type of another task", llama + "    hidden_size: 64\n", "text-classification");
}

// Adds recipes with which a run cannot start.
void add_starts(Mistakes& all) {
  const auto add = [&](const char* name, const std::string& task, const std::string& model) {
    all.push_back({std::string("train: ") + name, [=] {
                     const std::string yaml = "task: " + task + "\nmodel: {" + model + "}\n";
                     check_recipe(parse_recipe(yaml, "r.yaml"), Verb::train);
                   }});
  };
  add("a folder without a model", "text-classification", "path: .");
  all.push_back({"train: no training data", [] {
                   write_file_atomic("config.json", "");
                   check_recipe(parse_recipe("model: {path: .}\n", "r.yaml"), Verb::train);
                 }});
  add("a model of the hub", "text-classification", "path: google/bert_uncased");
  add("no tokenizer", "causal-lm", "config: {model_type: gpt2}");
  add("an unknown type of model", "causal-lm", "type: mamba");
  add("a type of model without sizes", "causal-lm", "type: llama");
  add("a new model and a folder", "causal-lm", "type: llama, path: .");
  all.push_back({"train: no samples to evaluate", [] {
                   const std::string yaml = "data: {train: a.tsv}\nevaluate: {every: 10}\n";
                   require_evaluated_samples(parse_recipe(yaml, "r.yaml"));
                 }});
}

// Adds jobs whose ranks cannot be arranged as requested, or are slow.
void add_topologies(Mistakes& all) {
  const auto add = [&](const char* name, const std::string& training, const std::vector<std::string>& hosts) {
    all.push_back({std::string("topology: ") + name, [=] {
                     const Recipe recipe = parse_recipe("training: {" + training + "}\n", "r.yaml");
                     const TopologyRequest request = topology_request(recipe);
                     throw ConfigError("{}", slow_topology(resolve(request, hosts), hosts, request.labels));
                   }});
  };
  add("hosts with different numbers of ranks", "strategy: hsdp", {"a", "b", "b"});
  add("a host whose ranks tp does not divide", "strategy: hsdp, mesh: {tp: 2}", equal_hosts(2, 3));
  add("layers on several hosts", "mesh: {tp: 2}", {"a", "b"});
  all.push_back({"topology: a mesh of more ranks than the job's",
                 [] { require_ranks({.dp_replicate = 3, .tp = 2}, 2); }});
}

// Adds settings that contradict each other.
void add_contradictions(Mistakes& all) {
  const auto batch = [&](const char* name, int ranks, const std::string& yaml) {
    all.push_back({std::string("batch: ") + name, [=] {
                     const Recipe recipe = parse_recipe("training: {" + yaml + "}\n", "r.yaml");
                     resolve(topology_request(recipe), equal_hosts(1, ranks));
                   }});
  };
  batch("sizes that contradict", 2, "global_batch_size: 16, batch_size: 4, grad_accumulation_steps: 3");
  batch("steps without samples", 1, "global_batch_size: 2, grad_accumulation_steps: 3");
  batch("samples and tokens", 1, "batch_size: 2, max_tokens: 100");
  batch("deterministic on more ranks than micro-batches", 4,
        "deterministic: true, global_batch_size: 12, batch_size: 4");
  batch("copies of three ranks", 2, "strategy: hsdp, dp_shard: 3");
  const auto check = [&](const char* name, const std::string& yaml) {
    all.push_back(
        {std::string("settings: ") + name, [=] { check_recipe(parse_recipe(yaml, "r.yaml"), Verb::fit); }});
  };
  check("Nesterov without momentum", "optimizer: {type: SGD, nesterov: true}\n");
  check("betas out of range", "optimizer: {betas: [0.9, 1]}\n");
  check("a negative rate", "optimizer: {lr: -1}\n");
  check("etas in the wrong order", "optimizer: {type: Rprop, etas: [1.2, 0.5]}\n");
  check("a scaled rate without its batch size", "optimizer: {scale_lr: linear}\n");
  check("a batch size without a scaled rate", "optimizer: {base_batch_size: 8}\n");
  check("an unknown schedule", "scheduler: {type: Linear}\n");
  check("a schedule without its step size", "scheduler: {type: StepLR}\n");
  check("a warm-up that is set twice", "scheduler: {num_warmup_steps: 3, warmup_ratio: 0.1}\n");
  check("a warm-up longer than the run", "scheduler: {num_warmup_steps: 9}\ntraining: {max_steps: 4}\n");
  check("early stopping without evaluations", "evaluate: {every: never}\nearly_stopping: {patience: 2}\n");
  check("a setting of an average without one", "ema: {warmup: true}\n");
  check("rollback without checkpoints", "training: {on_spike: rollback}\ncheckpoint: {every: never}\n");
  check("a loss scale of another precision", "loss_scale: {hysteresis: 2}\n");
  check("a least loss scale above the first", "training: {precision: fp16}\nloss_scale: {min_scale: 1e9}\n");
  check("a folder that is not there", "training: {offload_optimizer: gone}\n");
  check("a server without its tracker", "track: {logging_dir: 'http://mlflow:5000'}\n");
  check("a tag without a value", "track: {tags: [a]}\n");
  check("smoothed labels of a regression",
        "task: text-classification\ntext_classification: {label_smoothing: 0.1, problem_type: regression}\n");
  const auto schedule = [&](const char* name, const std::string& scheduler) {
    all.push_back({std::string("schedule: ") + name, [=] {
                     const Recipe recipe = parse_recipe("scheduler: {" + scheduler + "}\n", "r.yaml");
                     optim::make_schedule(recipe.scheduler)->start({.lr = 0.1}, 10);
                   }});
  };
  schedule("no momentum", "type: CyclicLR, max_lr: 1");
  schedule("fewer steps than the run", "type: OneCycleLR, max_lr: 1, cycle_momentum: false, total_steps: 9");
  schedule("an end above the rate", "type: PolynomialDecayWithWarmup, lr_end: 0.1");
  schedule("an end at once", "type: AnnealOnPlateau, min_learning_rate: 0.2");
}

}  // namespace

void add_recipes(Mistakes& all) {
  add_keys(all);
  all.push_back(
      {"registry: an unknown optimizer", [] { optim::optimizers().at("AdamX", "optimizer.type"); }});
  add_model_sections(all);
  add_starts(all);
  add_strategies(all);
  add_topologies(all);
  add_contradictions(all);
}

}  // namespace stretto
