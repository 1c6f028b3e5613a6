#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stretto/base/precision.h"

namespace stretto::compat {

// A job of run_llama_nxd_ptl.py as one of its job scripts starts it, for a plan.
struct LlamaJob {
  std::filesystem::path config;     // the config.json of --model_path
  int64_t layers = -1, width = -1;  // --num_layers and --hidden_size; -1: those of the config.json
  int64_t hosts = 1, ranks_per_host = 1;
  int64_t tp = 1, pp = 1;
  int64_t sequences = 1;      // of a group of ranks and micro-batch
  int64_t micro_batches = 1;  // of a group and step
  int64_t length = 0;         // tokens per sequence
  bool recomputes = true;     // all activations of layers
  bool divides_rows = false;  // between layers, among the ranks of each
  std::string strategy = "ddp";
  Precision precision = Precision::bf16;
  std::vector<std::string> refused;  // by stretto run-llama: flags, each with the reason
  std::vector<std::string> notes;    // about the script

  int64_t groups() const { return hosts * ranks_per_host / (tp * pp); }  // of ranks, on different sequences
  int64_t global_batch() const { return sequences * micro_batches * groups(); }

  // The job on other ranks, with the sequences per step that it has. Throws ConfigError if they cannot be
  // divided.
  LlamaJob arranged(int64_t on_hosts, int64_t on_ranks_per_host, int64_t with_tp, int64_t with_pp) const;
};

// Reads a job script (job_script.h). `given`: variables. Throws ConfigError with file and line for what
// cannot be read, for flags that the script has not, and for ranks that tp x pp does not divide.
LlamaJob read_llama_job(const std::filesystem::path& script, const std::map<std::string, std::string>& given);

}  // namespace stretto::compat
