#include <iostream>
#include <memory>

#include "stretto/config/recipe.h"
#include "stretto/programs/stretto/verbs.h"

namespace stretto::cli {
namespace {

// The help of a verb, of a section or setting of recipes, or of the program.
std::string help_on(const CLI::App& app, const std::string& topic) {
  if (topic.empty()) {  // app.help() would describe the parsed verb, `help`
    return app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal) +
           "\nSections of a recipe (stretto help SECTION):\n" + recipe_sections();
  }
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (verb->get_name() == topic) return verb->help(app.get_name());
  }
  return recipe_help_on(topic);
}

}  // namespace

void add_help(CLI::App& app, int& exit_code) {
  CLI::App* verb =
      app.add_subcommand("help", "Print the help of a verb, or of a section or setting of recipes");
  auto topic = std::make_shared<std::string>();
  verb->add_option("topic", *topic, "A verb, a section such as optimizer, or a setting such as optimizer.lr");
  verb->callback([topic, &app, &exit_code] {
    std::cout << help_on(app, *topic);
    exit_code = 0;
  });
}

}  // namespace stretto::cli
