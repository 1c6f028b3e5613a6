#include "stretto/launch/hosts/host_list.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/process.h"
#include "stretto/base/strings.h"
#include "stretto/cluster/socket.h"

namespace stretto::launch {
namespace {

constexpr int most_ranks = 4096;

// Throws for a name that begins with a dash, which ssh would take for an option.
void check_name(const std::string& name, const std::string& where) {
  constexpr std::string_view special = "._-@:%";
  const auto is_allowed = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           special.find(c) != std::string_view::npos;
  };
  if (!name.empty() && name.front() != '-' && name.front() != '@' && name.back() != '@' &&
      std::ranges::all_of(name, is_allowed))
    return;
  throw ConfigError(
      "{}: \"{}\" is not the name or address of a host; expected for example node-7 or user@10.0.0.7", where,
      name);
}

int parse_ranks(std::string_view text, std::string_view word, const std::string& where) {
  const auto ranks = parse_int(text);
  if (ranks && *ranks >= 1 && *ranks <= most_ranks) return static_cast<int>(*ranks);
  throw ConfigError("{}: \"{}\": the number of ranks must be in 1 .. {}", where, word, most_ranks);
}

// "node-b", "node-b:4", "[fd77::1]", "[fd77::1]:4", "fd77::1".
ListedHost parse_host(std::string_view word, const std::string& where) {
  ListedHost host;
  size_t end = word.find(':');
  if (const size_t bracket = word.find('['); bracket != std::string_view::npos) {
    const size_t close = word.find(']');
    if (close == std::string_view::npos || (close + 1 < word.size() && word[close + 1] != ':'))
      throw ConfigError("{}: \"{}\": expected [ADDRESS] or [ADDRESS]:RANKS", where, word);
    host.name =
        std::string(word.substr(0, bracket)) + std::string(word.substr(bracket + 1, close - bracket - 1));
    end = close + 1 < word.size() ? close + 1 : std::string_view::npos;
  } else if (end != std::string_view::npos && word.find(':', end + 1) != std::string_view::npos) {
    host.name = word;  // an IPv6 address without a number of ranks
    end = std::string_view::npos;
  } else {
    host.name = word.substr(0, end);
  }
  check_name(host.name, where);
  if (end != std::string_view::npos) host.ranks = parse_ranks(word.substr(end + 1), word, where);
  return host;
}

void add(std::vector<ListedHost>& hosts, const ListedHost& host) {
  const auto known = std::ranges::find(hosts, host.name, &ListedHost::name);
  if (known == hosts.end()) {
    hosts.push_back(host);
  } else {
    known->ranks = std::max(1, known->ranks) + std::max(1, host.ranks);
  }
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    if (end > begin) words.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

ListedHost parse_line(const std::vector<std::string_view>& words, const std::string& where) {
  ListedHost host = parse_host(words[0], where);
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    const std::string_view name = words[i].substr(0, equals);
    const bool has_value = equals != std::string_view::npos;
    if (has_value && name == "slots") {
      if (host.ranks != 0)
        throw ConfigError("{}: the number of ranks of {} is given twice", where, host.name);
      host.ranks = parse_ranks(words[i].substr(equals + 1), words[i], where);
    } else if (!has_value || (name != "max_slots" && name != "max-slots")) {
      throw ConfigError(
          "{}: \"{}\" is not known; expected a host and optionally its number of ranks, as in {} slots=4",
          where, words[i], words[0]);
    }
  }
  return host;
}

}  // namespace

std::string ListedHost::address() const { return name.substr(name.find('@') + 1); }

std::vector<ListedHost> parse_hosts(const std::string& text) {
  std::vector<ListedHost> hosts;
  for (const std::string_view word : split(text, ',')) {
    if (trim(word).empty())
      throw ConfigError(
          "--hosts: \"{}\": a name is missing; expected names separated by commas, as in node-a,node-b:4",
          text);
    add(hosts, parse_host(trim(word), "--hosts"));
  }
  return hosts;
}

std::vector<ListedHost> read_hostfile(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  std::vector<ListedHost> hosts;
  int number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    const auto words = words_of(line.substr(0, line.find('#')));
    if (!words.empty()) add(hosts, parse_line(words, fmt::format("{}:{}", path.string(), number)));
  }
  if (hosts.empty())
    throw ConfigError("--hostfile {}: the file names no host; expected lines such as \"node-b slots=4\"",
                      path.string());
  return hosts;
}

bool is_this_host(const std::string& name) {
  const std::string own = host_name();
  if (name == "localhost" || name == own || name == own.substr(0, own.find('.'))) return true;
  try {
    cluster::bind_socket({name, 0});
    return true;
  } catch (const IoError&) {
    return false;
  }
}

}  // namespace stretto::launch
