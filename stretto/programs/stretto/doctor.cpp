#include <fmt/ranges.h>

#include "stretto/base/strings.h"
#include "stretto/cluster/machine/findings.h"
#include "stretto/cluster/machine/memory.h"
#include "stretto/launch/launch.h"
#include "stretto/programs/arguments/doctor_report.h"
#include "stretto/programs/arguments/launch_arguments.h"
#include "stretto/programs/arguments/memory_need.h"
#include "stretto/programs/stretto/rank_program.h"
#include "stretto/programs/stretto/verbs.h"

namespace stretto::cli {
namespace {

void print_machine(const machine::Machine& machine) {
  const machine::Processor& processor = machine.processor;
  fmt::print("stretto    {}\n", STRETTO_VERSION);
  fmt::print("processor  {}: {}{}\n", processor.model, processor.instructions(),
             processor.bf16() ? "" : "; no bf16 instructions: bf16 saves memory but no time");
  fmt::print("cores      {}{}\n", machine.cores,
             machine.core_quota ? fmt::format(", limited to {:.1f} CPUs", *machine.core_quota) : "");
  fmt::print("memory     {}, {} available; transparent huge pages: {}\n", human_bytes(machine.memory),
             human_bytes(machine.memory_available), machine.huge_pages.empty() ? "none" : machine.huge_pages);
  fmt::print("gpus       {}\n", machine.gpus == 0 ? "none" : std::to_string(machine.gpus));
  std::vector<std::string> interfaces;
  for (const auto& [name, address] : machine.interfaces) interfaces.push_back(name + " " + address);
  fmt::print("network    {}\n", fmt::join(interfaces, ", "));
}

int doctor(int ranks, const std::filesystem::path& report) {
  if (!report.empty()) arguments::require_place_for_report(report);
  constexpr double measured_bytes = 350e6;  // the buffers that a rank copies, reduces and multiplies
  arguments::require_memory(ranks, arguments::library_memory() + measured_bytes, machine::available_memory());
  const machine::Machine machine = machine::read_machine();
  print_machine(machine);
  for (const auto& [what, fix] : machine::findings(machine)) fmt::print("fix        {}: {}\n", what, fix);
  std::fflush(stdout);
  launch::LaunchOptions options{.command = rank_command(), .ranks = ranks};
  if (ranks == 0) options.ranks = machine.gpus > 0 ? launch::default_ranks() : std::min(2, machine.cores);
  return launch::run(options);
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  CLI::App* verb = app.add_subcommand(
      "doctor", "Print the hardware of this machine, measure its speed, and report problems with fixes");
  auto ranks = std::make_shared<int>(0);
  auto report = std::make_shared<std::filesystem::path>();  // the ranks write it
  arguments::add_ranks_option(*verb, *ranks, "Ranks for the measurements (default: 2, or one per GPU)");
  arguments::add_report_option(*verb, *report);
  verb->callback([ranks, report, &exit_code] { exit_code = doctor(*ranks, *report); });
}

}  // namespace stretto::cli
