#include "stretto/programs/arguments/launch_recipe.h"

#include <optional>

#include "stretto/base/inputs.h"
#include "stretto/checkpoint_format/run_lock.h"
#include "stretto/cluster/machine/memory.h"
#include "stretto/compat/foreign.h"
#include "stretto/config/requested_checkpoint.h"
#include "stretto/config/topology_request.h"
#include "stretto/launch/launch.h"
#include "stretto/programs/arguments/memory_need.h"
#include "stretto/programs/arguments/recipe_handover.h"
#include "stretto/programs/arguments/recipe_outline.h"

namespace stretto::arguments {

void require_job(const RecipeArguments& arguments, const Recipe& recipe,
                 const std::vector<std::string>& hosts) {
  compat::require_batch_equation(compat::read_foreign(arguments.files), recipe, std::ssize(hosts));
  resolve(topology_request(recipe), hosts);
  require_division(recipe);
}

int launch_recipe(const RecipeArguments& arguments, const Recipe& recipe, Verb verb,
                  std::vector<std::string> command) {
  launch::LaunchOptions options{.command = std::move(command), .log_folder = recipe.output / "logger_logs"};
  options.own_program = true;
  options.flight_record = recipe.output / "flight_record.json";
  apply(arguments.launch, options);
  if (options.ranks == 0) options.ranks = launch::default_ranks();
  const std::vector<std::string> hosts = options.hosts.hosts_of_ranks(options.ranks);
  if (!arguments.launch.oversubscribe)
    require_memory(recipe, verb, {.ranks = static_cast<int>(hosts.size()), .ranks_per_host = options.ranks},
                   machine::available_memory());
  // Each rank checks again, since hosts may differ. The first launcher has checked for the launchers that it
  // started.
  if (verb != Verb::test && !options.hosts.joined) require_job(arguments, recipe, hosts);
  options.hosts.inputs = inputs_of(recipe);
  const RecipeHandover handover(arguments, recipe);
  for (const auto& [name, value] : handover.environment()) options.environment[name] = value;
  std::optional<checkpoint_format::RunLock> lock;
  // On other hosts, rank 0 locks the folder.
  const bool is_first_host = options.hosts.nodes == 1 || options.hosts.node_rank == 0;
  if (verb != Verb::test && is_first_host) {  // the lock must precede the launcher's logs
    lock.emplace(recipe.output);
    options.environment[checkpoint_format::RunLock::variable] = lock->value();
    require_requested_checkpoint(recipe);
  }
  return launch::run(options);
}

}  // namespace stretto::arguments
