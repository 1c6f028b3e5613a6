#include "stretto/programs/stretto_rank/shared_prompts.h"

#include <nlohmann/json.hpp>

#include "stretto/base/error.h"

namespace stretto::rank {
namespace {

// The number of batches per round: the more, the less ranks wait for each other at the end of a round.
constexpr int64_t batches_per_round = 8;

// CBOR transports any bytes, as texts may be invalid UTF-8.
std::string encode(const nlohmann::json& value) {
  const auto bytes = nlohmann::json::to_cbor(value);
  return {bytes.begin(), bytes.end()};
}

nlohmann::json encode(const std::vector<GeneratedText>& found) {
  nlohmann::json list = nlohmann::json::array();
  for (const GeneratedText& one : found) list.push_back({one.text, one.token_ids});
  return list;
}

std::vector<GeneratedText> decode(const nlohmann::json& list) {
  std::vector<GeneratedText> found;
  for (const auto& one : list) found.push_back({one.at(0), one.at(1)});
  return found;
}

}  // namespace

SharedPrompts::SharedPrompts(Group& group, int64_t batch_size, Continue continue_texts, OnText on_text)
    : group_(group),
      round_(static_cast<size_t>(batches_per_round * batch_size * group.size())),
      continue_(std::move(continue_texts)),
      on_text_(std::move(on_text)) {}

void SharedPrompts::add(std::string text) {
  waiting_.push_back(std::move(text));
  if (waiting_.size() == round_) run_round(std::exchange(waiting_, {}));
}

void SharedPrompts::finish() {
  if (!waiting_.empty()) run_round(std::exchange(waiting_, {}));
}

void SharedPrompts::end() { run_round({}); }

void SharedPrompts::serve() {
  while (run_round({})) {
  }
}

// Takes the prompts from rank 0; without any, returns false. Throws on rank 0 if a rank cannot continue its
// prompts.
bool SharedPrompts::run_round(const std::vector<std::string>& texts) {
  const auto all =
      nlohmann::json::from_cbor(group_.broadcast_bytes(encode(texts), 0)).get<std::vector<std::string>>();
  if (all.empty()) return false;
  const auto rank = static_cast<size_t>(group_.rank()), size = static_cast<size_t>(group_.size());
  std::vector<std::string> own;
  for (size_t i = rank; i < all.size(); i += size) own.push_back(all[i]);
  nlohmann::json result = {{"texts", nlohmann::json::array()}};
  std::vector<std::vector<GeneratedText>> found;
  try {
    continue_(own, first_ + group_.rank(), group_.size(), found);
  } catch (const DataError& error) {
    result["error"] = error.what();
  }
  for (const auto& texts_of_prompt : found) result["texts"].push_back(encode(texts_of_prompt));
  first_ += std::ssize(all);
  std::vector<nlohmann::json> results;
  for (const std::string& bytes : group_.all_gather_bytes(encode(result)))
    results.push_back(nlohmann::json::from_cbor(bytes));
  if (group_.rank() != 0) return true;
  for (size_t i = 0; i < all.size(); ++i) {
    const nlohmann::json& of_rank = results[i % size];
    if (i / size >= of_rank.at("texts").size()) throw DataError("{}", of_rank.at("error").get<std::string>());
    on_text_(all[i], decode(of_rank["texts"][i / size]));
  }
  return true;
}

}  // namespace stretto::rank
