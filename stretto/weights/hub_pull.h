#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace stretto::hub {

struct PullOptions {
  std::string revision = "main";  // a branch, a tag, or a commit
  // patterns (* and ?) of files to fetch in addition to those of `is_wanted`
  std::vector<std::string> include = {};
};

struct RemoteFile {
  std::string name;  // relative path within the model
  int64_t size = 0;
  std::string etag;  // the name of its content in the cache: SHA-256 if it is large, else git's hash
  bool sha256 = false;
};

// The progress that a pull reports.
struct PullEvents {
  // Called with the files that are missing in the cache.
  std::function<void(const std::vector<RemoteFile>& files, int64_t bytes)> start = {};
  std::function<void(const RemoteFile& file)> file = {};
  std::function<void(int64_t bytes)> received = {};
};

struct Pulled {
  std::filesystem::path snapshot;
  std::string commit;
  std::vector<std::string> left_out;  // files that were not requested
  int64_t fetched = 0;                // files; the others were in the cache
};

// Whether a file is fetched by default: in the top folder, weights as safetensors, their index,
// configuration, tokenizer and texts; nothing that could be executed.
bool is_wanted(const std::string& name);

// Fetches a model's files into the cache (weights/hub_cache.h) from $HF_ENDPOINT, https://huggingface.co if
// it is not set, with the token $HF_TOKEN if there is one. A partial download is continued; each is verified
// by its hash before it gets its name; refs/REVISION is written last. Throws ConfigError for a model,
// revision or permission that does not exist, and with HF_HUB_OFFLINE=1; DataError for contents that do not
// have the announced size and hash; HttpError; IoError.
Pulled pull(const std::string& name, const PullOptions& options, const PullEvents& events);

}  // namespace stretto::hub
