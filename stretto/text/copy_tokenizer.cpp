#include "stretto/text/copy_tokenizer.h"

#include <nlohmann/json.hpp>

#include "stretto/base/files.h"
#include "stretto/text/tokenizer.h"
#include "stretto/text/tokenizer_load.h"

namespace stretto::text {

void copy_tokenizer(const std::filesystem::path& source, bool lowercase,
                    const std::filesystem::path& folder) {
  const bool one_file = !std::filesystem::is_directory(source);
  const std::filesystem::path from = one_file ? source.parent_path() : source;
  for (const std::string& name : tokenizer_file_names()) {
    const bool wanted =
        !one_file || source.filename() == name || (source.filename() == "vocab.json" && name == "merges.txt");
    if (wanted && std::filesystem::exists(from / name))
      write_file_atomic(folder / name, read_file(from / name));
  }
  if (std::filesystem::exists(folder / "tokenizer_config.json")) return;
  const std::string name = Tokenizer::load(source, {.lowercase = lowercase}).hugging_face_class();
  nlohmann::ordered_json config = {{"tokenizer_class", name}};
  if (name == "BertTokenizer") config["do_lower_case"] = lowercase;
  write_file_atomic(folder / "tokenizer_config.json", config.dump(2) + "\n");
}

}  // namespace stretto::text
