#include "stretto/launch/diagnosis/flight_record.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/base/json.h"

namespace stretto::launch {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* record_format = "stretto flight record 1";

Json call_json(const FlightCall& call) {
  Json json = {{"sequence", call.sequence},     {"operation", call.operation},
               {"shape", call.shape},           {"dtype", call.dtype},
               {"bytes", call.bytes},           {"group", call.group},
               {"group_id", call.group_id},     {"group_rank", call.group_rank},
               {"group_size", call.group_size}, {"started_ago", call.started_ago}};
  if (call.waiting_for) json["waiting_for"] = *call.waiting_for;
  if (call.ended_ago) json["ended_ago"] = *call.ended_ago;
  if (call.failed) json["failed"] = true;
  return json;
}

Json rank_json(const RankRecord& rank) {
  Json calls = Json::array();
  for (const FlightCall& call : rank.last_calls) calls.push_back(call_json(call));
  Json json = {{"rank", rank.rank}};
  if (!rank.host.empty()) json["host"] = rank.host;
  json.update({{"pid", rank.pid},
               {"recorded", rank.recorded},
               {"state", rank.state},
               {"ending", rank.ending},
               {"progress_ago", rank.progress_ago},
               {"calls", rank.calls},
               {"last_calls", std::move(calls)}});
  if (!rank.program.empty()) json["program"] = rank.program;
  return json;
}

// Reads the members of one object of the file; throws DataError for the first that is missing or has another type.
class Members {
 public:
  Members(const nlohmann::json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) refuse("is not an object");
  }

  template <class T>
  void read(const char* name, T& value) const {
    const auto found = json_.find(name);
    if (found == json_.end()) refuse(fmt::format("has no \"{}\"", name));
    try {
      value = found->get<T>();
    } catch (const nlohmann::json::exception&) {
      refuse(fmt::format("has a \"{}\" of another type", name));
    }
  }
  template <class T>
  void read_if_there(const char* name, T& value) const {
    if (json_.contains(name)) read(name, value);
  }
  void read_if_there(const char* name, std::optional<double>& value) const {
    if (json_.contains(name)) read(name, value.emplace());
  }
  const nlohmann::json& array(const char* name) const {
    const auto found = json_.find(name);
    if (found == json_.end() || !found->is_array()) refuse(fmt::format("has no list \"{}\"", name));
    return *found;
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw DataError("{} {}: the file is broken, or of another version of stretto", where_, what);
  }

 private:
  const nlohmann::json& json_;
  std::string where_;
};

FlightCall parse_call(const nlohmann::json& json, const std::string& where) {
  const Members members(json, where);
  FlightCall call;
  members.read("sequence", call.sequence);
  members.read("operation", call.operation);
  members.read("shape", call.shape);
  members.read("dtype", call.dtype);
  members.read("bytes", call.bytes);
  members.read("group", call.group);
  members.read("group_id", call.group_id);
  members.read("group_rank", call.group_rank);
  members.read("group_size", call.group_size);
  members.read("started_ago", call.started_ago);
  members.read_if_there("waiting_for", call.waiting_for);
  members.read_if_there("ended_ago", call.ended_ago);
  members.read_if_there("failed", call.failed);
  return call;
}

RankRecord parse_rank(const nlohmann::json& json, const std::string& where) {
  const Members members(json, where);
  RankRecord rank;
  members.read("rank", rank.rank);
  members.read_if_there("host", rank.host);
  members.read("pid", rank.pid);
  members.read("recorded", rank.recorded);
  members.read("state", rank.state);
  members.read("ending", rank.ending);
  members.read_if_there("program", rank.program);
  members.read("progress_ago", rank.progress_ago);
  members.read("calls", rank.calls);
  for (const nlohmann::json& call : members.array("last_calls")) {
    rank.last_calls.push_back(parse_call(call, fmt::format("{}: call {}", where, rank.last_calls.size())));
  }
  return rank;
}

FlightRecord parse_record(const nlohmann::json& json, const std::string& where) {
  const Members members(json, where + ":");
  std::string format;
  members.read("format", format);
  if (format != record_format) {
    throw DataError("{}: its format is \"{}\"; this version of stretto reads \"{}\"", where, format,
                    record_format);
  }
  FlightRecord record;
  members.read("host", record.host);
  members.read("time", record.time);
  members.read("reason", record.reason);
  members.read("restart_count", record.restart_count);
  members.read("max_restarts", record.max_restarts);
  for (const nlohmann::json& rank : members.array("ranks"))
    record.ranks.push_back(parse_rank(rank, fmt::format("{}: rank {}", where, record.ranks.size())));
  return record;
}

}  // namespace

std::string FlightCall::call() const {
  std::string text = operation;
  for (const std::string* part : {&shape, &dtype}) {
    if (!part->empty()) text += " " + *part;
  }
  return fmt::format("{} #{}", text, sequence);
}

void read_board(const cluster::FlightBoard& board, int page, RankRecord& rank) {
  const cluster::RankFlight flight = board.read(page);
  const int64_t now = cluster::record_time();
  const auto ago = [&](int64_t time) { return static_cast<double>(now - time) * 1e-9; };
  rank.recorded = flight.pid != 0;
  if (!rank.recorded) return;
  rank.progress_ago = ago(flight.progress);
  rank.calls = flight.calls;
  for (const auto& [call, started, waiting_since, ended, failed] : flight.collectives) {
    FlightCall& kept = rank.last_calls.emplace_back(FlightCall{.sequence = call.sequence,
                                                               .group_id = fmt::format("{:x}", call.group_id),
                                                               .group = call.group,
                                                               .group_rank = call.group_rank,
                                                               .group_size = call.group_size,
                                                               .operation = call.operation,
                                                               .shape = call.shape,
                                                               .dtype = call.dtype,
                                                               .bytes = call.bytes,
                                                               .started_ago = ago(started),
                                                               .failed = failed});
    if (waiting_since != 0)
      kept.waiting_for =
          (ended != 0 ? static_cast<double>(ended - waiting_since) * 1e-9 : ago(waiting_since));
    if (ended != 0) kept.ended_ago = ago(ended);
  }
}

std::string to_json(const FlightRecord& record) {
  Json ranks = Json::array();
  for (const RankRecord& rank : record.ranks) ranks.push_back(rank_json(rank));
  const Json json = {{"format", record_format},
                     {"host", record.host},
                     {"time", record.time},
                     {"reason", record.reason},
                     {"restart_count", record.restart_count},
                     {"max_restarts", record.max_restarts},
                     {"ranks", std::move(ranks)}};
  return json.dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

FlightRecord merge(std::vector<FlightRecord> records) {
  FlightRecord all = std::move(records.at(0));
  for (size_t i = 1; i < records.size(); ++i) {
    for (RankRecord& rank : records[i].ranks) all.ranks.push_back(std::move(rank));
  }
  std::ranges::sort(all.ranks, {}, &RankRecord::rank);
  return all;
}

FlightRecord parse_flight_record(const std::string& text, const std::string& where) {
  return parse_record(parse_json(text, where), where);
}

FlightRecord read_flight_record(const std::filesystem::path& path) {
  return parse_record(read_json(path), path.string());
}

}  // namespace stretto::launch
