#include "stretto/text/copy_tokenizer.h"

#include <nlohmann/json.hpp>

#include "stretto/base/files.h"

namespace stretto::text {

void copy_tokenizer(const std::filesystem::path& source, bool lowercase,
                    const std::filesystem::path& folder) {
  const bool one_file = !std::filesystem::is_directory(source);
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"}) {
    const std::filesystem::path file = one_file ? source : source / name;
    if (one_file && source.filename() != name) continue;
    if (std::filesystem::exists(file)) write_file_atomic(folder / name, read_file(file));
  }
  if (std::filesystem::exists(folder / "tokenizer_config.json")) return;
  // The one tokenizer class that text::Tokenizer reads.
  const nlohmann::ordered_json config = {{"tokenizer_class", "BertTokenizer"}, {"do_lower_case", lowercase}};
  write_file_atomic(folder / "tokenizer_config.json", config.dump(2) + "\n");
}

}  // namespace stretto::text
