#pragma once

#include <functional>
#include <string>
#include <vector>

namespace stretto {

// A user's mistake. `make` does what it leads to, which throws a stretto::Error; the working folder is an empty one, so
// that messages name the files that it writes there without a folder. No message may hold the words of a library
// (yaml-cpp, nlohmann-json), which differ by version.
struct Mistake {
  std::string name;  // unique, the subject first: "recipe: an unknown key"
  std::function<void()> make;
};
using Mistakes = std::vector<Mistake>;

// The groups, a file each: recipe_mistakes.cpp, ...
void add_recipes(Mistakes& all);
void add_data(Mistakes& all);
void add_tokenizers(Mistakes& all);
void add_foreign_files(Mistakes& all);
void add_scripts(Mistakes& all);
void add_checkpoints(Mistakes& all);
void add_weights(Mistakes& all);
void add_environments(Mistakes& all);
void add_hangs(Mistakes& all);

inline Mistakes mistakes() {
  Mistakes all;
  for (const auto add : {add_recipes, add_data, add_tokenizers, add_foreign_files, add_scripts,
                         add_checkpoints, add_weights, add_environments, add_hangs})
    add(all);
  return all;
}

}  // namespace stretto
