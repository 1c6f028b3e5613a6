#include "stretto/launch/hosts/job_watch.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/launch/diagnosis/diagnosis.h"
#include "stretto/launch/supervise.h"

namespace stretto::launch {

namespace {

using Kind = HostEvent::Kind;

}  // namespace

std::optional<HostEvent> JobWatch::next() {
  while (auto event = link_.next()) {
    switch (event->kind) {
      case Kind::ready:
        break;
      case Kind::lost:
        host_lost_ = true;
        [[fallthrough]];
      case Kind::failure:
        if (take_failure(*event)) return event;
        break;
      case Kind::stop:
        return event;
      case Kind::look:
        event->code = ++looks_;
        return event;
      case Kind::record:
        take_record(event->code);
        break;
      case Kind::stopped:
        codes_[static_cast<size_t>(event->node)] = event->code;
        break;
    }
  }
  return std::nullopt;
}

// A usage error explains other failures, as on one host, regardless of the order in which they were detected.
bool JobWatch::take_failure(const HostEvent& event) {
  const bool explains = failure_ && event.code == usage_error && failure_->code != usage_error;
  if (failure_ && !explains) return false;
  failure_ = event;
  held_.reset();
  return true;
}

void JobWatch::report(int exit_code, const std::string& text, const FlightRecord& record,
                      cluster::Clock::duration delay) {
  held_ = Held{cluster::Clock::now() + delay,
               {.kind = Kind::failure, .code = exit_code, .text = text},
               to_json(record)};
  send_due();
}

void JobWatch::send_due() {
  if (!held_ || cluster::Clock::now() < held_->due) return;
  link_.publish("record", std::move(held_->record));
  link_.post(std::move(held_->event));
  held_.reset();
}

void JobWatch::ask_for_records() {
  const auto now = cluster::Clock::now();
  if (now < next_look_) return;
  next_look_ = now + std::max<std::chrono::milliseconds>(std::chrono::milliseconds(500), hang_limit_ / 10);
  link_.post({.kind = Kind::look});
}

void JobWatch::send_record(int look, const FlightRecord& record) {
  next_look_ = cluster::Clock::now() + std::chrono::milliseconds(500);
  link_.publish("look", to_json(record));
  link_.post({.kind = Kind::record, .code = look});
}

void JobWatch::stopped(int exit_code) {
  if (announced_end_ || held_) return;
  announced_end_ = true;
  link_.post({.kind = Kind::stopped, .code = exit_code});
}

// Node 0 evaluates the records when all hosts have answered.
void JobWatch::take_record(int look) {
  if (link_.node() != 0 || failure_ || ++records_[look] < codes_.size()) return;
  const double limit = std::chrono::duration<double>(hang_limit_).count();
  std::vector<FlightRecord> records;
  for (int node = 0; node < static_cast<int>(codes_.size()); ++node) {
    const auto text = link_.published_by(node, "look");
    if (!text) return;
    try {
      records.push_back(parse_flight_record(*text, "flight record of " + link_.plan().describe(node)));
    } catch (const DataError& error) {
      return log::warning("{}", error.what());
    }
  }
  const FlightRecord all = merge(std::move(records));
  if (const auto hang = diagnose_hang(all, limit, own_program_)) {
    link_.post({.kind = Kind::failure, .code = hang_exit_code, .text = *hang});
  } else if (const auto work = long_work(all, limit)) {
    log::info("{}", *work);
    next_look_ = cluster::Clock::now() + hang_limit_;
  }
}

int JobWatch::exit_code() const {
  if (failure_) return failure_->code;
  const auto first = std::ranges::find_if(codes_, [](int code) { return code != 0; });
  return first == codes_.end() ? 0 : *first;
}

FlightRecord JobWatch::record_of_all(FlightRecord own) {
  const std::string reason = failure_ ? failure_->text : own.reason;
  std::vector<FlightRecord> records = {std::move(own)};
  for (int node = 1; node < static_cast<int>(codes_.size()); ++node) {
    const auto text = link_.published_by(node, "record");
    if (!text) continue;
    try {
      records.push_back(parse_flight_record(*text, "flight record of " + link_.plan().describe(node)));
    } catch (const DataError& error) {
      log::warning("{}", error.what());
    }
  }
  FlightRecord all = merge(std::move(records));
  all.reason = reason;
  return all;
}

}  // namespace stretto::launch
