#include "stretto/programs/arguments/parse.h"

#include <algorithm>
#include <span>

#include <fmt/ranges.h>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/base/strings.h"
#include "stretto/programs/arguments/standard_output.h"

namespace stretto::arguments {
namespace {

// The innermost verb on the command line, such as "rm" in "stretto checkpoints rm".
const CLI::App& chosen_verb(const CLI::App& app) {
  const auto verbs = app.get_subcommands();
  return verbs.empty() ? app : chosen_verb(*verbs.front());
}

// "stretto checkpoints rm"
std::string full_name(const CLI::App& app, const CLI::App& verb) {
  std::string name = verb.get_name();
  for (const CLI::App* above = &verb; above != &app; above = above->get_parent()) {
    name = above->get_parent()->get_name() + " " + name;
  }
  return std::string(trim(name));
}

std::vector<std::string> option_names(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  for (const CLI::App* inner : verb.get_subcommands([](const CLI::App*) { return true; })) {
    if (!inner->get_name().empty()) continue;  // a verb; option groups have no name
    for (std::string& name : option_names(*inner)) names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> names_of_verbs(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!verb->get_name().empty()) names.push_back(verb->get_name());
  }
  return names;
}

// Describes a word that is neither an option nor an expected argument.
std::string describe_extra(const CLI::App& verb, const std::string& word) {
  if (!word.starts_with('-')) return fmt::format("\"{}\" is not expected here", word);
  const std::string name = word.substr(0, word.find('='));
  return fmt::format("{} is not an option{}", name, did_you_mean(name, option_names(verb)));
}

// The long name of the option that --help does not list and one of whose values the message quotes.
std::string name_of_hidden(const CLI::App& verb, const std::string& message) {
  for (const CLI::Option* option : verb.get_options()) {
    const auto is_quoted = [&](const std::string& value) {
      return message.find('"' + value + '"') != std::string::npos;
    };
    if (option->get_group().empty() && std::ranges::any_of(option->results(), is_quoted))
      return "--" + option->get_lnames().front();
  }
  return "";
}

// Adds the short name of an option, which may be the one that was given; CLI11 names options by their long
// names, and hidden ones not at all.
std::string with_short_name(const CLI::App& verb, const std::string& message) {
  if (message.starts_with(": ")) return name_of_hidden(verb, message) + message;
  for (const CLI::Option* option : verb.get_options()) {
    if (!option->get_snames().empty() && message.starts_with(option->get_name() + ": "))
      return fmt::format("-{}, {}", option->get_snames().front(), message);
  }
  return message;
}

int flush_after_help() {
  try {
    flush_standard_output();
    return 0;
  } catch (const IoError& error) {
    log::error("{}", error.what());
    return error.exit_code();
  }
}

// The words that a verb parses itself: those of a program that it launches come last.
std::span<const char* const> own_words(const CLI::App& verb, std::span<const char* const> words) {
  const size_t launched = verb.get_prefix_command() ? verb.remaining().size() : 0;
  return words.first(words.size() - std::min(launched, words.size()));
}

// The message for a value of a flag, such as --encrypt=yes, which CLI11 accepts; "" if there is none.
std::string describe_flag_value(const CLI::Option& flag, std::span<const char* const> words) {
  for (const std::string_view word : words) {
    const size_t equals = word.find('=');
    if (!word.starts_with("--") || equals == std::string_view::npos) continue;
    if (flag.check_lname(std::string(word.substr(2, equals - 2))))
      return fmt::format("it takes no value, found \"{}\"", word.substr(equals + 1));
  }
  return "";
}

// `words`: the command line without the program's name, which must outlive the parsing.
void refuse_values_of_flags(CLI::App& app, std::span<const char* const> words) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() > 0) continue;
    option->check([&app, option, words](const std::string&) {
      return describe_flag_value(*option, own_words(app, words));
    });
  }
  for (CLI::App* inner : app.get_subcommands([](CLI::App*) { return true; }))
    refuse_values_of_flags(*inner, words);
}

// Refuses an option in the place of another one's value, which CLI11 takes for the value. A verb with extras
// has options that are not known here.
void refuse_options_as_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0 || option->get_positional()) continue;
    option->check([&app, option](const std::string& value) -> std::string {
      if (!value.starts_with("--")) return "";
      const std::vector<std::string> known = option_names(app);
      const bool is_option =
          app.get_allow_extras() || std::ranges::find(known, value.substr(0, value.find('='))) != known.end();
      return is_option ? fmt::format("its value {} is missing, as {} follows", option->get_type_name(), value)
                       : "";
    });
  }
  for (CLI::App* inner : app.get_subcommands([](CLI::App*) { return true; }))
    refuse_options_as_values(*inner);
}

// CLI11's message for an argument that is given too often or not often enough, in our words; another message
// as it is.
std::string describe_number(const std::string& message) {
  constexpr std::string_view received = " required but received ", most = ": At Most 1",
                             least = ": At least ";
  const size_t end = message.find(received);
  if (end == std::string::npos) return message;
  const std::string bounded = message.substr(0, end), number = message.substr(end + received.size());
  if (bounded.ends_with(most)) {
    return fmt::format("{}: it is given {} times; expected once",
                       bounded.substr(0, bounded.size() - most.size()), number);
  }
  const size_t at = bounded.find(least);
  if (at == std::string::npos) return message;
  return fmt::format("{}: {} is given; expected at least {}", bounded.substr(0, at), number,
                     bounded.substr(at + least.size()));
}

// CLI11's message for an option without its value, in our words; another message as it is.
std::string describe_missing_value(const std::string& message) {
  constexpr std::string_view required = ": 1 required ";
  constexpr std::string_view missing = " missing";
  const size_t at = message.find(required);
  if (at == std::string::npos || !message.ends_with(missing)) return message;
  const size_t type = at + required.size();
  return fmt::format("{}: its value {} is missing", message.substr(0, at),
                     message.substr(type, message.size() - missing.size() - type));
}

// Names an argument in a message: "--ddp", or "the name \"zero2\"" if it is given by its position.
std::string mention(const CLI::App& verb, const std::string& name) {
  const CLI::Option* option = verb.get_option_no_throw(name);
  const bool by_position = option != nullptr && option->get_positional() && !option->results().empty();
  return by_position ? fmt::format("the {} \"{}\"", name, option->results().front()) : name;
}

// CLI11's message for arguments that exclude one another, in our words; another message as it is.
std::string describe_exclusion(const CLI::App& verb, const std::string& message) {
  constexpr std::string_view excludes = " excludes ";
  const size_t at = message.find(excludes);
  if (at == std::string::npos) return message;
  return fmt::format("{} and {} exclude one another; give one of them", mention(verb, message.substr(0, at)),
                     mention(verb, message.substr(at + excludes.size())));
}

// The message for a missing verb, such as for "stretto checkpoints".
std::string describe_missing_verb(const std::vector<std::string>& verbs,
                                  const std::vector<std::string>& extra) {
  const std::string known = fmt::format("expected one of {}", fmt::join(verbs, ", "));
  if (extra.empty()) return known;
  return fmt::format("\"{}\": {}{}", extra.front(), known, did_you_mean(extra.front(), verbs));
}

}  // namespace

std::string describe_usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& verb = chosen_verb(app);
  const auto extra = app.remaining(/*recurse=*/true);
  const bool is_extra_error = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  // An unknown option is the likely cause of other errors, such as a missing option, unless the verb accepts
  // arbitrary words.
  const bool is_unknown =
      !extra.empty() && extra.front().starts_with('-') && extra.front() != "--" && !verb.get_allow_extras();
  const bool is_extra = !extra.empty() && (is_extra_error || is_unknown);
  const std::string name = full_name(app, verb);
  const std::vector<std::string> inner = names_of_verbs(verb);
  const bool is_exclusion = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExcludesError);
  std::string message = !inner.empty() ? describe_missing_verb(inner, extra)
                        : is_extra     ? describe_extra(verb, extra.front())
                        : is_exclusion
                            ? describe_exclusion(verb, error.what())
                            : describe_missing_value(describe_number(with_short_name(verb, error.what())));
  if (const size_t end = message.find_last_not_of(".\n "); end != std::string::npos) message.resize(end + 1);
  return fmt::format("{}{}{}; {}--help lists the options", name, name.empty() ? "" : ": ", message,
                     name.empty() ? "" : name + " ");
}

std::optional<int> parse(CLI::App& app, int argc, const char* const* argv) {
  refuse_values_of_flags(app, std::span(argv, static_cast<size_t>(argc)).subspan(1));
  refuse_options_as_values(app);
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      app.exit(error);
      return flush_after_help();
    }
    log::error("{}", describe_usage_error(app, error));
    return 2;
  }
}

}  // namespace stretto::arguments
