#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stretto::launch {

// A host of a job, as --hosts or a hostfile lists it.
struct ListedHost {
  std::string name;  // ssh's destination: "node-7", "user@10.0.0.7"
  int ranks = 0;     // 0: not given

  std::string address() const;  // `name` without the user
};

// Reads "node-a,node-b:4,[fd77::1]:2". A host that is listed n times has n ranks, or the sum of its numbers,
// and the position of its first entry. Throws ConfigError.
std::vector<ListedHost> parse_hosts(const std::string& text);

// Reads a file with a host per line, in the forms of Open MPI and DeepSpeed ("node-b slots=4"; max_slots is
// ignored), MPICH ("node-b:4") and PBS (a line per rank); "#" begins a comment. Throws ConfigError, with the
// line, and IoError.
std::vector<ListedHost> read_hostfile(const std::filesystem::path& path);

// Whether `name` is the name of this host or resolves to one of its addresses.
bool is_this_host(const std::string& name);

}  // namespace stretto::launch
