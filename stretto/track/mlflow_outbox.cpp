#include "stretto/track/mlflow_outbox.h"

#include <algorithm>
#include <fstream>

#include <fcntl.h>
#include <sys/file.h>

#include "stretto/base/error.h"
#include "stretto/base/json.h"
#include "stretto/base/strings.h"

namespace stretto::mlflow_outbox {
namespace {

std::filesystem::path outbox_of(const std::filesystem::path& run) { return folder_of(run) / "outbox.jsonl"; }

}  // namespace

std::filesystem::path folder_of(const std::filesystem::path& run) { return run / "mlflow"; }

Writer::Writer(const std::filesystem::path& run, bool continues) {
  make_folders(folder_of(run));
  const std::filesystem::path path = outbox_of(run);
  if (continues && std::filesystem::exists(path)) {
    std::string text = read_file(path);
    const size_t complete = text.rfind('\n') + 1;  // npos + 1 is 0
    if (complete < text.size()) write_file_atomic(path, text.substr(0, complete));
    read_last_steps(text);
    empty_ = complete == 0;
  } else {
    write_file_atomic(path, "");
    std::filesystem::remove(folder_of(run) / "sent.json");
  }
  file_.emplace(path);
}

void Writer::read_last_steps(const std::string& text) {
  for (const std::string_view line : split(text, '\n')) {
    const auto entry = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!entry.is_object() || !entry.contains("metrics")) continue;
    for (const auto& metric : entry["metrics"]) {
      if (!metric.is_array() || metric.size() != 3 || !metric[0].is_string() || !metric[2].is_number())
        continue;
      int64_t& last = metric[0].get<std::string>().starts_with("eval/") ? last_evaluation_ : last_training_;
      last = std::max(last, metric[2].get<int64_t>());
    }
  }
}

void Writer::append(const nlohmann::json& entry) {
  file_->write(entry.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  empty_ = false;
}

Sent read_sent(const std::filesystem::path& run) {
  const std::filesystem::path path = folder_of(run) / "sent.json";
  Sent sent;
  if (!std::filesystem::exists(path)) return sent;
  const nlohmann::json text = read_json(path);
  try {
    text.at("position").get_to(sent.position);
    text.at("uri").get_to(sent.uri);
    text.at("experiment_id").get_to(sent.experiment_id);
    text.at("run_id").get_to(sent.run_id);
    text.at("artifacts").get_to(sent.artifacts);
    text.at("creating").get_to(sent.creating);
  } catch (const nlohmann::json::exception& error) {
    throw DataError("{}: it was not written by stretto: {}; remove it to send everything to a new run",
                    path.string(), error.what());
  }
  return sent;
}

void save_sent(const std::filesystem::path& run, const Sent& sent) {
  const nlohmann::ordered_json text = {{"position", sent.position},           {"uri", sent.uri},
                                       {"experiment_id", sent.experiment_id}, {"run_id", sent.run_id},
                                       {"artifacts", sent.artifacts},         {"creating", sent.creating}};
  write_file_atomic(folder_of(run) / "sent.json", text.dump(2) + "\n");
}

std::vector<Entry> read_entries(const std::filesystem::path& run, int64_t position, size_t count) {
  std::ifstream file(outbox_of(run), std::ios::binary);
  file.seekg(position);
  std::vector<Entry> entries;
  std::string line;
  while (entries.size() < count && std::getline(file, line) && !file.eof()) {
    position += std::ssize(line) + 1;
    auto content = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    entries.push_back({content.is_object() ? std::move(content) : nlohmann::json::object(), position});
  }
  return entries;
}

int64_t count_unsent(const std::filesystem::path& run, int64_t position) {
  std::ifstream file(outbox_of(run), std::ios::binary);
  file.seekg(position);
  return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
}

Fd lock(const std::filesystem::path& run) {
  Fd fd(::open((folder_of(run) / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) fd.reset();
  return fd;
}

}  // namespace stretto::mlflow_outbox
