#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace stretto {

// A parameter that a model will have.
struct OutlineParameter {
  std::string name;  // as in weight files
  std::vector<int64_t> shape;
  std::string block;     // the transformer layer or embeddings that contain it; "": outside these
  int64_t products = 0;  // multiply-adds of a forward per row of the layer's input
  bool trainable = true;
  bool is_table = false;  // of embeddings; a head that shares it is not a separate parameter
  int64_t elements() const;
};

// The parameters of a model by its config.json, in the order in which its module registers them, without
// creating the model. The launcher bounds the memory of a job by it.
class ModelOutline {
 public:
  const std::vector<OutlineParameter>& parameters() const { return parameters_; }
  int64_t elements() const;
  int64_t trainable_elements() const;
  // The number of elements of the trainable parameters by block, in order; a block is gathered as a whole
  // (parallel/arena.h).
  std::vector<int64_t> trainable_blocks() const;
  int64_t products() const;  // the sum of its parameters'
  int64_t elements_without_tables() const;

  // The layers of an encoder and the width of their states, for a model that reads them; 0 for other models.
  int64_t layers = 0, width = 0;

  // Heads of queries, and of keys and values, in each layer of a model whose layers can be divided among
  // ranks; 0 for other models.
  int64_t heads = 0, key_heads = 0;
  bool divides_among(int64_t ranks) const;  // evenly, or with several ranks for a head of keys and values

  // Parameters that are added next belong to this block.
  void begin_block(std::string name) { block_ = std::move(name); }
  void add(std::string name, std::vector<int64_t> shape, int64_t products = 0);
  void linear(const std::string& name, int64_t in, int64_t out);  // weight [out, in] and bias
  void norm(const std::string& name, int64_t width);              // weight and bias
  // The weight [rows, width] of an embedding; `products`: those of a head that shares it.
  void table(const std::string& name, int64_t rows, int64_t width, int64_t products = 0);
  // The parameters of `part` under names that begin with `prefix` ("transformer.").
  void add_part(const std::string& prefix, ModelOutline part);
  void freeze() {
    freeze_if([](const OutlineParameter&) { return true; });
  }
  template <class Predicate>
  void freeze_if(const Predicate& predicate) {
    for (OutlineParameter& parameter : parameters_)
      if (predicate(parameter)) parameter.trainable = false;
  }

 private:
  std::vector<OutlineParameter> parameters_;
  std::string block_;
};

// The message for heads that so many ranks cannot divide as ModelOutline::divides_among() requires.
std::string uneven_heads(int64_t heads, int64_t key_heads, int64_t ranks);

// The model_type of each bundled family, and of those among them that predict next tokens. The latter refuse
// keys of config.json that they do not know (known_keys.h).
std::vector<std::string> bundled_model_types();
std::vector<std::string> bundled_decoders();

// The outline of a bundled family's model with a head of heads.h. nullopt for another model_type, or a head
// that the family has not. Throws ConfigError with `source` for values out of range.
std::optional<ModelOutline> outline_of(const nlohmann::json& config, const std::string& source,
                                       std::string_view head);

}  // namespace stretto
