#include "stretto/launch/diagnosis/flight_record.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/base/json.h"

// Like nlohmann-json 3.12, which converts null to nullopt.
template <class T>
struct nlohmann::adl_serializer<std::optional<T>> {
  static void to_json(json& to, const std::optional<T>& value) { to = value ? json(*value) : json(); }
  static void from_json(const json& from, std::optional<T>& value) {
    value = from.is_null() ? std::nullopt : std::optional(from.get<T>());
  }
};

namespace stretto::launch {

using nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FlightCall, sequence, group_id, group, group_rank, group_size, operation,
                                   shape, dtype, bytes, started_ago, waiting_for, ended_ago, failed)
// Lists are omitted: their items are read one by one, so that errors name them.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankRecord, rank, host, pid, recorded, state, ending, program,
                                   progress_ago, calls)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FlightRecord, host, time, reason, restart_count, max_restarts)

namespace {

constexpr const char* record_format = "stretto flight record 1";

// Adds keys that earlier versions omitted for default values.
json completed(json defaults, const json& given) {
  defaults.update(given);
  return defaults;
}

FlightRecord parse_record(const json& given, const std::string& where) {
  std::string place = where;  // the place of the value that is being read
  try {
    const auto format = given.at("format").get<std::string>();
    if (format != record_format) {
      throw DataError("{}: its format is \"{}\"; this version of stretto reads \"{}\"", where, format,
                      record_format);
    }
    auto record = given.get<FlightRecord>();
    for (const json& rank : given.at("ranks").get<json::array_t>()) {
      place = fmt::format("{}: rank {}", where, record.ranks.size());
      const std::string rank_place = place;
      auto& read =
          record.ranks.emplace_back(completed({{"host", ""}, {"program", ""}}, rank).get<RankRecord>());
      for (const json& call : rank.at("last_calls").get<json::array_t>()) {
        place = fmt::format("{}: call {}", rank_place, read.last_calls.size());
        read.last_calls.push_back(
            completed({{"waiting_for", nullptr}, {"ended_ago", nullptr}, {"failed", false}}, call)
                .get<FlightCall>());
      }
    }
    return record;
  } catch (const json::exception& error) {
    throw DataError("{}: the file is broken, or of another version of stretto: {}", place, error.what());
  }
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
  json all = record;
  all["format"] = record_format;
  all["ranks"] = json::array();
  for (const RankRecord& rank : record.ranks) {
    json& written = all["ranks"].emplace_back(rank);
    written["last_calls"] = rank.last_calls;
  }
  return all.dump(1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace) + "\n";
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
