#pragma once

#include <functional>
#include <string>
#include <vector>

namespace stretto {

// A user's mistake. `make` commits it and throws a stretto::Error. It runs in an empty working folder, so
// that messages name files without a folder. No message may contain text of a library (yaml-cpp,
// nlohmann-json), because that differs between versions.
struct Mistake {
  std::string name;  // unique, the subject first: "recipe: an unknown key"
  std::function<void()> make;
};
using Mistakes = std::vector<Mistake>;

// The groups, one per file: recipe_mistakes.cpp, ...
void add_recipes(Mistakes& all);
void add_data(Mistakes& all);
void add_token_corpora(Mistakes& all);
void add_tokenizers(Mistakes& all);
void add_foreign_files(Mistakes& all);
void add_scripts(Mistakes& all);
void add_checkpoints(Mistakes& all);
void add_weights(Mistakes& all);
void add_environments(Mistakes& all);
void add_hangs(Mistakes& all);
void add_modules(Mistakes& all);
void add_manual(Mistakes& all);
void add_lite(Mistakes& all);

inline Mistakes mistakes() {
  Mistakes all;
  for (const auto add :
       {add_recipes, add_data, add_token_corpora, add_tokenizers, add_foreign_files, add_scripts,
        add_checkpoints, add_weights, add_environments, add_hangs, add_modules, add_manual, add_lite})
    add(all);
  return all;
}

}  // namespace stretto
