#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stretto::hub {

// The cache of models that the tools of Hugging Face share: $HF_HUB_CACHE, else $HF_HOME/hub, else
// ~/.cache/huggingface/hub (with $XDG_CACHE_HOME in place of ~/.cache). A model owner/name is the folder
// models--owner--name in it, with
//   blobs/ETAG                       the content of files
//   snapshots/COMMIT/FILE            links to blobs
//   refs/REVISION                    the commit that a branch or tag was at when it was last fetched
std::filesystem::path cache_folder();

// Whether `name` has the form of a model's name: "owner/name" or "name", of letters, digits, "-", "_" and
// "."; of at most 96 characters, without ".." and "--".
bool is_model_name(const std::string& name);

// Its folder in the cache, which may not exist. REQUIRES: is_model_name.
std::filesystem::path model_folder(const std::string& name);

// The snapshot of `revision` (a branch, a tag, or a commit) if it is in the cache.
std::optional<std::filesystem::path> find_snapshot(const std::string& name,
                                                   const std::string& revision = "main");

// The names of the models in the cache, sorted.
std::vector<std::string> cached_models();

// `path` itself if it exists or cannot be a model's name; else the cached snapshot of that name, if there is
// one, or `path`.
std::filesystem::path resolve_model(const std::filesystem::path& path);

// A hint for a message about a `path` that does not exist: how to fetch the model, if the path may be its
// name; else "".
std::string pull_hint(const std::filesystem::path& path);

}  // namespace stretto::hub
