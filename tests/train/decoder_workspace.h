#pragma once

#include "tests/train/thread_workspace.h"
#include <fmt/format.h>

#include "stretto/base/strings.h"

namespace stretto {

// A workspace of language models whose vocabulary and inner columns 2 and 4 ranks divide unevenly: gpt2.json,
// llama.json and, with 8 heads of queries but 2 heads or 1 of keys and values, llama-2.json and llama-1.json.
// The recipe trains gpt2.json.
class DecoderWorkspace : public ThreadWorkspace {
 public:
  DecoderWorkspace() {
    for (const char* name : {"train", "dev"}) {
      std::string lines;
      const std::string table = read(name + std::string(".tsv"));
      for (const std::string_view row : split(table, '\n'))
        lines += std::string(row.substr(0, row.find('\t'))) + "\n";
      write(name + std::string(".txt"), lines);
    }
    const auto words = std::ssize(split(trim(read("model/vocab.txt")), '\n'));
    write("gpt2.json", fmt::format(R"({{"model_type": "gpt2", "vocab_size": {}, "n_embd": 32, "n_head": 4,
      "n_layer": 2, "n_positions": 24, "n_inner": 50}})",
                                   words));
    for (const auto& [name, key_heads] : {std::pair("llama", 4), {"llama-2", 2}, {"llama-1", 1}}) {
      write(name + std::string(".json"),
            fmt::format(R"({{"model_type": "llama", "vocab_size": {}, "hidden_size": 32,
      "num_attention_heads": 8, "num_key_value_heads": {}, "num_hidden_layers": 2, "intermediate_size": 45,
      "max_position_embeddings": 24, "attention_dropout": 0.1}})",
                        words, key_heads));
    }
    write("recipe.yaml", fmt::format(R"(task: causal-lm
model: {{config: {0}gpt2.json}}
tokenizer: {{path: {0}model}}
data: {{train: {0}train.txt, validation: {0}dev.txt, max_length: 24, cache: {0}cache}}
causal_lm: {{document: line, append_eos: false}}
training: {{max_steps: 8, global_batch_size: 8, precision: fp64, device: cpu, seed: 7, max_grad_norm: 0.5}}
optimizer: {{lr: 0.003}}
evaluate: {{every: never, batch_size: 8}}
track: {{log_every: 1}}
)",
                                     path()));
  }
};

}  // namespace stretto
