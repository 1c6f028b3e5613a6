#include "stretto/model_config/outline.h"

#include <functional>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "stretto/base/strings.h"
#include "stretto/model_config/bart.h"
#include "stretto/model_config/bert.h"
#include "stretto/model_config/config_json.h"
#include "stretto/model_config/distilbert.h"
#include "stretto/model_config/gpt2.h"
#include "stretto/model_config/llama.h"
#include "stretto/model_config/sequence_tagger.h"

namespace stretto {

int64_t OutlineParameter::elements() const {
  return std::reduce(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

int64_t ModelOutline::elements() const {
  int64_t sum = 0;
  for (const OutlineParameter& parameter : parameters_) sum += parameter.elements();
  return sum;
}

int64_t ModelOutline::trainable_elements() const {
  int64_t sum = 0;
  for (const OutlineParameter& parameter : parameters_) sum += parameter.trainable ? parameter.elements() : 0;
  return sum;
}

std::vector<int64_t> ModelOutline::trainable_blocks() const {
  std::vector<int64_t> blocks;
  const std::string* previous = nullptr;
  for (const OutlineParameter& parameter : parameters_) {
    if (!parameter.trainable) continue;
    if (previous == nullptr || *previous != parameter.block) blocks.push_back(0);
    previous = &parameter.block;
    blocks.back() += parameter.elements();
  }
  return blocks;
}

bool ModelOutline::divides_among(int64_t ranks) const {
  return heads > 0 && heads % ranks == 0 && (key_heads % ranks == 0 || ranks % key_heads == 0);
}

std::string uneven_heads(int64_t heads, int64_t key_heads, int64_t ranks) {
  return fmt::format(
      "the model's {}, and its {} of keys and values, cannot be divided evenly among {} ranks; tp must divide the first number, and divide the second or be a multiple of it",
      counted(heads, "attention head"), counted(key_heads, "head"), ranks);
}

int64_t ModelOutline::products() const {
  int64_t sum = 0;
  for (const OutlineParameter& parameter : parameters_) sum += parameter.products;
  return sum;
}

int64_t ModelOutline::elements_without_tables() const {
  int64_t sum = 0;
  for (const OutlineParameter& parameter : parameters_) sum += parameter.is_table ? 0 : parameter.elements();
  return sum;
}

void ModelOutline::add(std::string name, std::vector<int64_t> shape, int64_t products) {
  parameters_.push_back(
      {.name = std::move(name), .shape = std::move(shape), .block = block_, .products = products});
}

void ModelOutline::linear(const std::string& name, int64_t in, int64_t out) {
  add(name + ".weight", {out, in}, out * in);
  add(name + ".bias", {out});
}

void ModelOutline::norm(const std::string& name, int64_t width) {
  add(name + ".weight", {width});
  add(name + ".bias", {width});
}

void ModelOutline::table(const std::string& name, int64_t rows, int64_t width, int64_t products) {
  add(name + ".weight", {rows, width}, products);
  parameters_.back().is_table = true;
}

void ModelOutline::add_part(const std::string& prefix, ModelOutline part) {
  for (OutlineParameter& parameter : part.parameters_) {
    parameter.name.insert(0, prefix);
    // The part is a block, with the parameters that are not in its inner blocks.
    parameter.block =
        parameter.block.empty() ? prefix.substr(0, prefix.find_last_of('.')) : prefix + parameter.block;
    parameters_.push_back(std::move(parameter));
  }
}

namespace {

template <class Config>
std::optional<ModelOutline> outline(const nlohmann::json& config, const std::string& source,
                                    std::string_view head) {
  return Config::from_json(config, source).outline(head);
}

using Outline = decltype(&outline<BertConfig>);

// By model_type.
const std::map<std::string, Outline>& outlines() {
  static const std::map<std::string, Outline> families = [] {
    std::map<std::string, Outline> all = {{"distilbert", outline<DistilBertConfig>},
                                          {"bart", outline<BartConfig>},
                                          {"gpt2", outline<Gpt2Config>},
                                          {SequenceTaggerConfig::model_type, outline<SequenceTaggerConfig>}};
    for (const BertVariant& variant : bert_variants()) all.emplace(variant.model_type, outline<BertConfig>);
    for (const LlamaVariant& variant : llama_variants())
      all.emplace(variant.model_type, outline<LlamaConfig>);
    return all;
  }();
  return families;
}

}  // namespace

std::vector<std::string> bundled_model_types() {
  std::vector<std::string> types;
  for (const auto& [type, outline] : outlines()) types.push_back(type);
  return types;
}

std::vector<std::string> bundled_decoders() {
  std::vector<std::string> types = {"gpt2"};
  for (const LlamaVariant& variant : llama_variants()) types.emplace_back(variant.model_type);
  return types;
}

std::optional<ModelOutline> outline_of(const nlohmann::json& config, const std::string& source,
                                       std::string_view head) {
  std::string type;
  ConfigJson(config, source).read("model_type", type);
  const auto family = outlines().find(type);
  return family == outlines().end() ? std::nullopt : family->second(config, source, head);
}

}  // namespace stretto
