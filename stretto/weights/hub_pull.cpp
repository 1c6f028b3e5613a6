#include "stretto/weights/hub_pull.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <fnmatch.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <unistd.h>

#include "stretto/base/error.h"
#include "stretto/base/fd.h"
#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/http.h"
#include "stretto/base/json.h"
#include "stretto/base/strings.h"
#include "stretto/base/temporary_name.h"
#include "stretto/weights/hub_cache.h"

namespace stretto::hub {
namespace {

std::string variable_or(const char* name, const std::string& unset) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? unset : value;
}

std::string endpoint() {
  std::string url = variable_or("HF_ENDPOINT", "https://huggingface.co");
  while (url.ends_with('/')) url.pop_back();
  if (!url.starts_with("http://") && !url.starts_with("https://"))
    throw ConfigError("HF_ENDPOINT: \"{}\" is not a URL; expected one such as https://huggingface.co", url);
  return url;
}

HttpRequest request_for(std::string url) {
  HttpRequest request;
  request.url = std::move(url);
  request.follow = true;
  if (const std::string token = variable_or("HF_TOKEN", ""); !token.empty())
    request.headers.push_back("Authorization: Bearer " + token);
  return request;
}

HttpReply send(const HttpRequest& request, const std::string& name) {
  try {
    return send_request(request);
  } catch (const HttpError& error) {
    throw HttpError(
        "{}: {}; check the connection and HF_ENDPOINT, or copy the model's folder here from a machine that has it and set model.path to it",
        name, error.what());
  }
}

[[noreturn]] void refuse_status(int64_t status, const std::string& name, const std::string& what) {
  const std::string known = did_you_mean(name, cached_models());
  const bool has_token = !variable_or("HF_TOKEN", "").empty();
  if (status == 401 || status == 403 || status == 404) {
    throw ConfigError("{}: {} has no {} that {} (status {}){}", name, endpoint(), what,
                      has_token ? "HF_TOKEN gives access to"
                                : "is public; check the name or, if it is private, set HF_TOKEN",
                      status, known);
  }
  throw HttpError("{}: {} replied with status {}; try again later", name, endpoint(), status);
}

// A relative path of a file that stays within its folder, with one slash per folder, as link() counts them.
bool is_inside(const std::string& file) {
  const std::filesystem::path path(file);
  return path.has_filename() && path.is_relative() && file.size() < 1000 &&
         file.find('\0') == std::string::npos && file.find("//") == std::string::npos &&
         std::ranges::none_of(path, [](const auto& part) { return part == ".." || part == "."; });
}

struct Listing {
  std::string commit;
  std::vector<RemoteFile> files;
};

RemoteFile read_entry(const nlohmann::json& entry, const std::string& source) {
  RemoteFile file;
  const auto bad = [&] {
    return DataError("{}: the entry {} is not understood", source, entry.dump().substr(0, 200));
  };
  if (!entry.is_object() || !entry.contains("rfilename") || !entry["rfilename"].is_string()) throw bad();
  file.name = entry["rfilename"].get<std::string>();
  const bool large = entry.contains("lfs") && entry["lfs"].is_object();
  const nlohmann::json& facts = large ? entry["lfs"] : entry;
  const char* hash = large ? "sha256" : "blobId";
  if (!facts.contains(hash) || !facts[hash].is_string() || !facts.contains("size") ||
      !facts["size"].is_number_unsigned())
    throw bad();
  file.sha256 = large;
  file.etag = facts[hash].get<std::string>();
  file.size = facts["size"].get<int64_t>();
  if (!is_hex(file.etag, large ? 64 : 40) || !is_inside(file.name) || file.size < 0) throw bad();
  return file;
}

Listing list_files(const std::string& name, const std::string& revision) {
  const std::string url =
      fmt::format("{}/api/models/{}/revision/{}?blobs=true", endpoint(), name, url_encode(revision));
  const HttpReply reply = send(request_for(url), name);
  if (reply.status != 200)
    refuse_status(reply.status, name,
                  revision == "main" ? "model of this name" : "revision " + revision + " of this model");
  const nlohmann::json json = parse_json(reply.body, url);
  Listing listing;
  if (!json.is_object() || !json.contains("sha") || !json["sha"].is_string() || !json.contains("siblings") ||
      !json["siblings"].is_array())
    throw DataError("{}: expected an object with sha and siblings, as Hugging Face replies", url);
  listing.commit = json["sha"].get<std::string>();
  if (!is_hex(listing.commit, 40)) throw DataError("{}: sha: \"{}\" is not a commit", url, listing.commit);
  for (const nlohmann::json& entry : json["siblings"]) listing.files.push_back(read_entry(entry, url));
  return listing;
}

// SHA-256, or git's hash of a blob: SHA-1 of "blob SIZE", a zero byte and the content.
class ContentHash {
 public:
  explicit ContentHash(const RemoteFile& file) : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    EVP_DigestInit_ex(context_.get(), file.sha256 ? EVP_sha256() : EVP_sha1(), nullptr);
    if (file.sha256) return;
    const std::string head = fmt::format("blob {}", file.size);
    add({head.c_str(), head.size() + 1});
  }
  void add(std::string_view bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }
  std::string value() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    EVP_DigestFinal_ex(context_.get(), digest.data(), &size);
    return to_hex({reinterpret_cast<const char*>(digest.data()), size});
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

// BLOB.incomplete, which only this process writes to; it keeps the bytes that an earlier process received.
class PartialFile {
 public:
  explicit PartialFile(std::filesystem::path path)
      : path_(std::move(path)), fd_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (fd_.get() < 0) throw IoError("{}: cannot open: {}", path_.string(), std::strerror(errno));
    if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0)
      throw IoError("{}: another process is fetching this file; wait for its end", path_.string());
    size_ = ::lseek(fd_.get(), 0, SEEK_END);
  }
  int64_t size() const { return size_; }

  void clear() {
    if (::ftruncate(fd_.get(), 0) != 0 || ::lseek(fd_.get(), 0, SEEK_SET) != 0) fail("truncate");
    size_ = 0;
  }

  void append(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("write");
      bytes.remove_prefix(static_cast<size_t>(written));
      size_ += written;
    }
  }

  // Renames the content to its final name if its size and hash are the announced ones; else removes it and
  // throws DataError.
  void finish(const RemoteFile& file, const std::filesystem::path& blob) {
    ContentHash hash(file);
    if (size_ > 0) hash.add(MappedFile(path_).text());
    if (size_ != file.size || hash.value() != file.etag) {
      std::filesystem::remove(path_);
      throw DataError("{}: received {} bytes that are not the announced {}; they were deleted; try again",
                      file.name, size_, file.size);
    }
    if (::fsync(fd_.get()) != 0) fail("sync");
    std::filesystem::rename(path_, blob);
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw IoError("{}: cannot {}: {}", path_.string(), what, std::strerror(errno));
  }

  std::filesystem::path path_;
  Fd fd_;
  int64_t size_ = 0;
};

void fetch(const std::string& name, const std::string& commit, const RemoteFile& file,
           const std::filesystem::path& blob, const PullEvents& events) {
  PartialFile part(blob.string() + ".incomplete");
  if (part.size() > file.size) part.clear();
  if (part.size() > 0 && events.received) events.received(part.size());
  if (part.size() < file.size) {
    std::string path;
    for (const std::string_view piece : split(file.name, '/')) path += "/" + url_encode(std::string(piece));
    HttpRequest request = request_for(fmt::format("{}/{}/resolve/{}{}", endpoint(), name, commit, path));
    if (part.size() > 0) request.headers.push_back(fmt::format("Range: bytes={}-", part.size()));
    bool first = true;
    request.receive = [&](int64_t status, std::string_view bytes) {
      if (first && status == 200 && part.size() > 0) {  // the whole file, regardless of the range requested
        if (events.received) events.received(-part.size());
        part.clear();
      }
      first = false;
      if (part.size() + std::ssize(bytes) > file.size)
        throw DataError("{}: the server sends more than the announced {} bytes", file.name, file.size);
      part.append(bytes);
      if (events.received) events.received(std::ssize(bytes));
    };
    const HttpReply reply = send(request, name);
    if (reply.status != 200 && reply.status != 206) refuse_status(reply.status, name, "file " + file.name);
  }
  part.finish(file, blob);
}

// A link at snapshots/COMMIT/FILE to the blob.
void link(const std::filesystem::path& snapshot, const RemoteFile& file) {
  const std::filesystem::path path = snapshot / file.name;
  std::filesystem::path target = "../../blobs";
  for (auto depth = std::ranges::count(file.name, '/'); depth > 0; --depth) target = ".." / target;
  std::filesystem::create_directories(path.parent_path());
  const std::filesystem::path fresh = temporary_name(path);
  std::filesystem::create_symlink(target / file.etag, fresh);
  std::filesystem::rename(fresh, path);
}

bool matches(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(
      patterns, [&](const std::string& pattern) { return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
}

std::vector<RemoteFile> chosen(const Listing& listing, const std::string& name, const PullOptions& options,
                               std::vector<std::string>& left_out) {
  std::vector<RemoteFile> files;
  bool has_weights = false;
  for (const RemoteFile& file : listing.files) {
    if (!is_wanted(file.name) && !matches(options.include, file.name)) {
      left_out.push_back(file.name);
      continue;
    }
    files.push_back(file);
    has_weights |= file.name.ends_with(".safetensors");
  }
  for (const std::string& pattern : options.include) {
    if (std::ranges::none_of(listing.files, [&](const auto& file) { return matches({pattern}, file.name); }))
      throw ConfigError("--include {}: {} has no such file; it has {}", pattern, name,
                        fmt::join(left_out, ", "));
  }
  const bool has_pickles = std::ranges::any_of(
      left_out, [](const auto& file) { return ::fnmatch("pytorch_model*.bin", file.c_str(), 0) == 0; });
  if (!has_weights && has_pickles)
    throw ConfigError(
        "{}: its weights are pickles, not safetensors; stretto reads them without executing anything: pass --include 'pytorch_model*'",
        name);
  return files;
}

}  // namespace

bool is_wanted(const std::string& name) {
  if (name.find('/') != std::string::npos || name.starts_with('.')) return false;
  static constexpr std::array endings = {".safetensors", ".json", ".txt", ".model", ".jinja", ".md"};
  return std::ranges::any_of(endings, [&](const char* ending) { return name.ends_with(ending); });
}

Pulled pull(const std::string& name, const PullOptions& options, const PullEvents& events) {
  if (!is_model_name(name))
    throw ConfigError(
        "\"{}\" is not a model's name; expected owner/name, such as google-bert/bert-base-uncased", name);
  if (options.revision.empty() || options.revision.find("..") != std::string::npos ||
      options.revision.front() == '/')
    throw ConfigError("--revision: \"{}\" is not a branch, tag or commit", options.revision);
  if (const std::string offline = variable_or("HF_HUB_OFFLINE", "0"); offline != "0")
    throw ConfigError("{}: HF_HUB_OFFLINE is set, so nothing is fetched; unset it to fetch the model", name);
  const Listing listing = list_files(name, options.revision);
  Pulled result;
  result.commit = listing.commit;
  const auto files = chosen(listing, name, options, result.left_out);
  const std::filesystem::path folder = model_folder(name);
  result.snapshot = folder / "snapshots" / listing.commit;
  make_folders(folder / "blobs");
  make_folders(result.snapshot);
  make_folders((folder / "refs" / options.revision).parent_path());
  std::vector<RemoteFile> missing;
  int64_t bytes = 0;
  for (const RemoteFile& file : files) {
    if (std::filesystem::exists(folder / "blobs" / file.etag)) continue;
    missing.push_back(file);
    bytes += file.size;
  }
  if (events.start) events.start(missing, bytes);
  for (const RemoteFile& file : missing) {
    const std::filesystem::path blob = folder / "blobs" / file.etag;
    if (std::filesystem::exists(blob)) continue;  // the content of an earlier file
    if (events.file) events.file(file);
    fetch(name, listing.commit, file, blob, events);
    ++result.fetched;
  }
  for (const RemoteFile& file : files) link(result.snapshot, file);
  write_file_atomic(folder / "refs" / options.revision, listing.commit);
  return result;
}

}  // namespace stretto::hub
