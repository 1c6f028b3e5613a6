#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate_json.h"

#include "stretto/base/json.h"
#include "stretto/token_corpus/json_text.h"
#include "stretto/token_corpus/manifest.h"

// Input: a corpus's manifest or a line of JSON Lines, which the first byte selects.
namespace stretto::fuzz {

using token_corpus::Manifest;

std::vector<std::string> seeds() {
  Manifest manifest;
  manifest.tokenizer = {"0a1b2c3d", "GPT2Tokenizer", 50257};
  manifest.settings.sources = {{"a.txt", 100, "00"}};
  manifest.settings.tokens_per_shard = 20;
  manifest.settings.after = {50256};
  manifest.tokens = 30;
  manifest.documents = 2;
  manifest.shards = {{40, "01"}, {20, "02"}};
  manifest.index = {16, "03"};
  const std::string unfinished(1, '\0'), line(1, '\x01');
  return {unfinished + manifest_text(manifest),
          line + R"({"id": 1, "text": "a \"b\"\n\u00e9", "tags": [1.5, {}]})"};
}

// Changes values in JSON.
std::string mutate_fields(const std::string& input, std::mt19937_64& random) {
  return input.empty() ? "" : input.substr(0, 1) + mutate_json(input.substr(1), random);
}

void run(const std::string& input) {
  if (input.empty()) return;
  const std::string_view text = std::string_view(input).substr(1);
  if (input[0] % 2 != 0) {
    std::string buffer;
    const auto found = token_corpus::find_json_text(text, "text", buffer);
    if (found) require(parse_json(text, "line").at("text") == *found, "a text is that of the parser");
    return;
  }
  const Manifest manifest = token_corpus::parse_manifest(text, "corpus.json");
  require(manifest_text(token_corpus::parse_manifest(manifest_text(manifest), "written")) ==
              manifest_text(manifest),
          "a manifest that is written is read");
  int64_t bytes = 0;
  for (const token_corpus::CheckedFile& shard : manifest.shards) bytes += shard.bytes;
  require(bytes == manifest.tokens * static_cast<int64_t>(manifest.token_bytes()), "shards hold the tokens");
}

}  // namespace stretto::fuzz
