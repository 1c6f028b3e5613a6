#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include "tests/fuzz/coverage.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/time.h>
#include <unistd.h>

#include "stretto/base/error.h"

// Limits the memory for one input, so that allocating a length that a file merely claims is a finding.
extern "C" const char* __asan_default_options() {  // NOLINT(bugprone-reserved-identifier)
  return "max_allocation_size_mb=1024:allocator_may_return_null=0:handle_abort=1:detect_leaks=0:abort_on_error=0";
}
extern "C" const char* __ubsan_default_options() {  // NOLINT(bugprone-reserved-identifier)
  return "print_stacktrace=1:halt_on_error=1:abort_on_error=1";
}
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace stretto::fuzz {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t max_bytes = size_t{64} << 10;
constexpr unsigned seconds_per_input = 10;       // processor time, independent of other programs
constexpr unsigned waiting_per_input = 10 * 60;  // by the clock, for inputs that hang without computing

struct Settings {
  double seconds = 0;  // 0: `runs` inputs
  uint64_t runs = 1000;
  uint64_t seed = 1;
  std::vector<std::string> replayed = {};  // files; only these are run
};

// The current input, for signal handlers.
const std::string* current = nullptr;
char finding_path[256] = "";

// Uses only async-signal-safe calls.
void keep_current_input() {
  if (current == nullptr) return;
  const int file = ::open(finding_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const auto say = [](const char* text) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
  };
  [[maybe_unused]] const ssize_t written = ::write(file, current->data(), current->size());
  say("\nthe input is in ");
  say(finding_path);
  say("; pass it as an argument to run it alone\n");
  current = nullptr;
}

void end_by_signal(int signal) {
  if (signal == SIGALRM || signal == SIGPROF) {
    constexpr std::string_view slow = "this input takes longer than 10 s of processor time, or 10 minutes\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, slow.data(), slow.size());
  }
  keep_current_input();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void watch_for_signals(const std::string& name) {
  std::snprintf(finding_path, sizeof finding_path, "%s.%d.input", name.c_str(), static_cast<int>(::getpid()));
  for (const int signal : {SIGALRM, SIGPROF}) ::signal(signal, end_by_signal);
  if (__sanitizer_set_death_callback != nullptr) return __sanitizer_set_death_callback(keep_current_input);
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) ::signal(signal, end_by_signal);
}

// Limits processor and wall-clock time; 0: no limit.
void limit_time(unsigned processor_seconds, unsigned clock_seconds) {
  const itimerval limit = {.it_interval = {}, .it_value = {.tv_sec = processor_seconds, .tv_usec = 0}};
  ::setitimer(ITIMER_PROF, &limit, nullptr);
  ::alarm(clock_seconds);
}

// Whether the input was refused. A finding ends the program.
bool refuses(const std::string& input) {
  current = &input;
  limit_time(seconds_per_input, waiting_per_input);
  bool refused = false;
  try {
    run(input);
  } catch (const Error&) {
    refused = true;
  } catch (const std::exception& error) {
    fmt::print(stderr, "an exception that is no stretto::Error: {}\n", error.what());
    keep_current_input();
    std::_Exit(1);
  }
  limit_time(0, 0);
  current = nullptr;
  return refused;
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw IoError("{}: cannot be read", path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

// The inputs that are mutated further.
struct Inputs {
  std::vector<std::string> all, accepted;

  void add(std::string input, bool refused) {
    if (!refused) accepted.push_back(input);
    all.push_back(std::move(input));
  }
};

// `name`: the name of the program, fuzz_TARGET.
Inputs starting_inputs(const std::string& name) {
  std::vector<std::string> texts = seeds();
  const std::filesystem::path corpus = std::filesystem::path(FUZZ_CORPUS) / name.substr(std::strlen("fuzz_"));
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(corpus, ignored))
    texts.push_back(content_of(entry.path()));
  Inputs inputs;
  for (const std::string& text : texts) {
    inputs.add(text, refuses(text));
    reached_something_new();
  }
  return inputs;
}

// Prefers later inputs, which reach further.
const std::string& choose(const std::vector<std::string>& inputs, std::mt19937_64& random) {
  return inputs[inputs.size() - 1 - random() % (random() % inputs.size() + 1)];
}

std::string next_input(const Inputs& inputs, std::mt19937_64& random) {
  const bool by_fields = mutate_fields != nullptr && !inputs.accepted.empty() && random() % 2 == 0;
  if (!by_fields) {
    return mutate(choose(inputs.all, random), inputs.all[random() % inputs.all.size()], max_bytes, random);
  }
  std::string result = mutate_fields(choose(inputs.accepted, random), random);
  if (result.size() > max_bytes) result.resize(max_bytes);
  return result;
}

void fuzz(const std::string& name, const Settings& settings) {
  std::mt19937_64 random(settings.seed);
  Inputs inputs = starting_inputs(name);
  const auto begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  uint64_t runs = 0, refused = 0;
  while (settings.seconds > 0 ? elapsed() < settings.seconds : runs < settings.runs) {
    std::string input = next_input(inputs, random);
    const bool was_refused = refuses(input);
    refused += was_refused;
    ++runs;
    if (reached_something_new()) inputs.add(std::move(input), was_refused);
  }
  if (runs > 0 && refused == runs)
    throw DataError("{}: all {} inputs were refused: no rule for accepted inputs was tested", name, runs);
  fmt::print("{}: {} inputs in {:.1f} s, {:.0f} % refused, {} kept{}; seed {}; nothing found\n", name, runs,
             elapsed(), runs == 0 ? 0.0 : 100.0 * static_cast<double>(refused) / static_cast<double>(runs),
             inputs.all.size(), measured() ? "" : " (built without coverage)", settings.seed);
}

Settings parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (argument == "--seconds" && has_value) {
      settings.seconds = std::stod(argv[++i]);
    } else if (argument == "--runs" && has_value) {
      settings.runs = std::stoull(argv[++i]);
    } else if (argument == "--seed" && has_value) {
      settings.seed = std::stoull(argv[++i]);
    } else if (!argument.starts_with("--")) {
      settings.replayed.emplace_back(argument);
    } else {
      throw ConfigError("usage: {} [--seconds N | --runs N] [--seed N] [FILE to run alone...]", argv[0]);
    }
  }
  return settings;
}

}  // namespace

void require(bool holds, const char* rule) {
  if (!holds) throw std::logic_error(rule);
}

int fuzz_main(int argc, char** argv) {
  try {
    const std::string name = std::filesystem::path(argv[0]).filename();
    const Settings settings = parse(argc, argv);
    if (!name.starts_with("fuzz_"))
      throw ConfigError("{}: a fuzz target's program is called fuzz_TARGET", name);
    watch_for_signals(name);
    for (const std::string& path : settings.replayed) {
      fmt::print("{}: {}\n", path, refuses(content_of(path)) ? "refused" : "accepted");
    }
    if (settings.replayed.empty()) fuzz(name, settings);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}

}  // namespace stretto::fuzz

int main(int argc, char** argv) { return stretto::fuzz::fuzz_main(argc, argv); }
