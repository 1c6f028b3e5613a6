#include <memory>

#include "stretto/base/error.h"
#include "stretto/launch/diagnosis/diagnosis.h"
#include "stretto/programs/arguments/checks.h"
#include "stretto/programs/stretto/verbs.h"

namespace stretto::cli {
namespace {

struct InspectArguments {
  std::filesystem::path where;
  size_t last = 5;
};

std::filesystem::path record_in(const std::filesystem::path& where) {
  if (!std::filesystem::exists(where))
    throw ConfigError("{}: there is no such file or folder", where.string());
  if (!std::filesystem::is_directory(where)) return where;
  const std::filesystem::path record = where / "flight_record.json";
  if (!std::filesystem::exists(record)) {
    throw ConfigError("{} holds no flight_record.json; the launcher writes one when a rank fails or hangs",
                      where.string());
  }
  return record;
}

}  // namespace

void add_inspect(CLI::App& app, int& exit_code) {
  CLI::App* verb =
      app.add_subcommand("inspect", "Show which rank of a run failed, and the last collectives of each rank");
  auto arguments = std::make_shared<InspectArguments>();
  verb->add_option("run", arguments->where,
                   "The output folder of a run, the --log-dir of a launch, or a flight_record.json")
      ->required()
      ->type_name("FOLDER");
  verb->add_option("--last", arguments->last,
                   "Number of collectives to show per rank (default: 5; at most 200)")
      ->type_name("N")
      ->check(arguments::whole_number_from(0, 200));
  verb->callback([arguments, &exit_code] {
    fmt::print("{}",
               launch::report(launch::read_flight_record(record_in(arguments->where)), arguments->last));
    exit_code = 0;
  });
}

}  // namespace stretto::cli
