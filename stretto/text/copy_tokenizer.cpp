#include "stretto/text/copy_tokenizer.h"

#include <nlohmann/json.hpp>

#include "stretto/base/files.h"
#include "stretto/base/json.h"
#include "stretto/text/tokenizer.h"
#include "stretto/text/tokenizer_load.h"

namespace stretto::text {

namespace {

// Whether the setting changes the tokenizer's ids.
bool depends_on_prefix_space(const std::filesystem::path& source, bool lowercase, bool wanted) {
  const Tokenizer with =
      Tokenizer::load(source, {.lowercase = lowercase, .add_prefix_space = wanted, .log_choices = false});
  const Tokenizer without = Tokenizer::load(source, {.lowercase = lowercase, .log_choices = false});
  return with.fingerprint() != without.fingerprint();
}

}  // namespace

void copy_tokenizer(const std::filesystem::path& source, bool lowercase, const std::filesystem::path& folder,
                    std::optional<bool> add_prefix_space) {
  const bool one_file = !std::filesystem::is_directory(source);
  const std::filesystem::path from = one_file ? source.parent_path() : source;
  for (const std::string& name : tokenizer_file_names()) {
    const bool wanted =
        !one_file || source.filename() == name || (source.filename() == "vocab.json" && name == "merges.txt");
    if (wanted && std::filesystem::exists(from / name))
      write_file_atomic(folder / name, MappedFile(from / name).text());
  }
  const std::filesystem::path file = folder / "tokenizer_config.json";
  const bool exists = std::filesystem::exists(file);
  nlohmann::ordered_json config;
  if (exists) {
    config = read_json(file);
  } else {
    const std::string name =
        Tokenizer::load(source, {.lowercase = lowercase, .log_choices = false}).hugging_face_class();
    config = {{"tokenizer_class", name}};
    if (name == "BertTokenizer") config["do_lower_case"] = lowercase;
  }
  const bool prefix = add_prefix_space && depends_on_prefix_space(source, lowercase, *add_prefix_space);
  if (prefix) config["add_prefix_space"] = *add_prefix_space;
  if (prefix || !exists) write_file_atomic(file, config.dump(2) + "\n");
  const std::filesystem::path words = from / words_folder / "tokenizer.json";
  if (one_file || !std::filesystem::exists(words)) return;
  make_folders(folder / words_folder);
  write_file_atomic(folder / words_folder / "tokenizer.json", MappedFile(words).text());
}

}  // namespace stretto::text
