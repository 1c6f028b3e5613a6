#include <iostream>

#include "stretto/config/recipe.h"
#include "stretto/programs/stretto/verbs.h"

namespace stretto::cli {

void add_schema(CLI::App& app, int& exit_code) {
  CLI::App* verb =
      app.add_subcommand("schema", "Print the JSON schema of recipe files, for editors and code generators");
  verb->callback([&exit_code] {
    std::cout << recipe_schema().dump(2) << "\n";
    exit_code = 0;
  });
}

}  // namespace stretto::cli
