#include "stretto/launch/hosts/link.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "stretto/base/error.h"
#include "stretto/base/log.h"
#include "stretto/cluster/store_client.h"

namespace stretto::launch {
namespace {

using cluster::Clock;
using Kind = HostEvent::Kind;

constexpr auto reading_slice = std::chrono::milliseconds(250);
constexpr const char* gone_key = "hosts.gone";  // the number of launchers that have ended

std::string encode(const HostEvent& event) {
  return nlohmann::json{static_cast<int>(event.kind), event.node, event.code, event.text}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// An event that cannot be parsed, such as that of another version, counts as a failure of this host.
HostEvent decode(const std::string& text) {
  try {
    const auto json = nlohmann::json::parse(text);
    const int kind = json.at(0);
    if (kind >= 0 && kind <= static_cast<int>(Kind::stopped))
      return {static_cast<Kind>(kind), json.at(1), json.at(2), json.at(3)};
  } catch (const nlohmann::json::exception&) {
  }
  return {Kind::failure, 0, 1, "the job's store has an event of another version of stretto"};
}

}  // namespace

HostLink::HostLink(HostMeeting meeting, std::chrono::milliseconds host_timeout)
    : meeting_(std::move(meeting)), host_timeout_(host_timeout), beats_(plan().hosts.size()) {
  if (node() != 0) {
    meeting_.client->add_at_end({fmt::format("{}.{}", gone_key, node()), gone_key}, 1);
  }
  writer_ = std::thread([this] { write_and_watch(); });
}

HostLink::~HostLink() {
  {
    std::unique_lock lock(mutex_);
    ending_ = true;
    wake_writer_.notify_all();
  }
  writer_.join();
  if (reader_.joinable()) reader_.join();
  meeting_.client.reset();
  // A lost host may keep its connections open forever.
  const bool all_here = std::ranges::none_of(lost_, [](bool lost) { return lost; });
  if (meeting_.server)
    meeting_.server->wait_until_unused(all_here ? host_timeout_ : std::chrono::milliseconds(200));
}

void HostLink::begin(int life) {
  if (reader_.joinable()) reader_.join();
  {
    const std::lock_guard lock(mutex_);
    life_ = life;
    events_.clear();
    stopped_.assign(plan().hosts.size(), false);
    if (life == 0) lost_ = stopped_;
    if (master_lost_) add(*master_lost_);  // before this start: nothing else would report it
  }
  reader_ = std::thread([this, life] { read_log(life); });
  publish("record", "");
  post({.kind = Kind::ready});
}

void HostLink::refuse_pause() const {
  log::warning(
      "SIGTSTP (Ctrl-Z) is ignored: the job runs on several hosts, and the others count this one as lost after {} s without a heartbeat; Ctrl-C ends the job and saves its state",
      std::chrono::duration<double>(host_timeout_).count());
}

std::optional<HostEvent> HostLink::next() {
  const std::lock_guard lock(mutex_);
  wake_.drain();
  if (events_.empty()) return std::nullopt;
  HostEvent event = std::move(events_.front());
  events_.pop_front();
  if (!events_.empty()) wake_.wake();
  return event;
}

void HostLink::post(HostEvent event) {
  event.node = node();
  const std::lock_guard lock(mutex_);
  outgoing_.push_back({.event = std::move(event), .key = "", .value = ""});
  wake_writer_.notify_all();
}

bool HostLink::over() const {
  const std::lock_guard lock(mutex_);
  if (master_lost_) return true;
  for (size_t node = 0; node < stopped_.size(); ++node) {
    if (!stopped_[node] && !lost_[node]) return false;
  }
  return true;
}

void HostLink::publish(const std::string& name, std::string text) {
  const std::lock_guard lock(mutex_);
  outgoing_.push_back({.event = std::nullopt, .key = published_key(node(), name), .value = std::move(text)});
  wake_writer_.notify_all();
}

// The key is the same for all starts of the ranks, so that the store does not grow.
std::string HostLink::published_key(int node, const std::string& name) {
  return fmt::format("hosts.{}.{}", name, node);
}

std::optional<std::string> HostLink::published_by(int node, const std::string& name) {
  try {
    std::string text = meeting_.client->get(published_key(node, name), std::chrono::milliseconds(0));
    if (!text.empty()) return text;
  } catch (const DistributedError&) {
  }
  return std::nullopt;
}

std::string HostLink::event_key(int life, int number) const {
  return fmt::format("hosts.life{}.event{}", life, number);
}

// Reads events until this start of the ranks is over.
void HostLink::read_log(int life) {
  for (int number = 0; !over();) {
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return;
    }
    try {
      const HostEvent event = decode(meeting_.client->get(event_key(life, number), reading_slice));
      ++number;
      deliver(event);
    } catch (const cluster::StoreTimeout&) {
    } catch (const DistributedError& error) {
      return lose_master(error.what());
    }
  }
}

void HostLink::deliver(const HostEvent& event) {
  const std::lock_guard lock(mutex_);
  add(event);
}

// REQUIRES: the lock.
void HostLink::add(const HostEvent& event) {
  const auto node = static_cast<size_t>(event.node);
  if (node >= stopped_.size()) return;
  if (event.kind == Kind::stopped) stopped_[node] = true;
  if (event.kind == Kind::lost) lost_[node] = true;
  events_.push_back(event);
  wake_.wake();
}

void HostLink::lose_master(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (master_lost_ || ending_) return;
  master_lost_ = HostEvent{
      Kind::lost, 0, 1,
      fmt::format("{} is lost: its launcher has ended or is stopped, or the network to it is down ({})",
                  plan().describe(0), why)};
  outgoing_.clear();
  wake_writer_.notify_all();
  add(*master_lost_);
}

void HostLink::write_and_watch() {
  const std::chrono::milliseconds longest(node() == 0 ? 100 : 250);
  const auto pause = std::min<std::chrono::milliseconds>(host_timeout_ / 12, longest);
  auto next_beat = Clock::now();
  try {
    while (true) {
      std::optional<Outgoing> outgoing;
      {
        std::unique_lock lock(mutex_);
        wake_writer_.wait_until(lock, next_beat,
                                [&] { return !outgoing_.empty() || ending_ || master_lost_; });
        if (master_lost_ || (ending_ && outgoing_.empty())) return;
        if (!outgoing_.empty()) {
          outgoing = std::move(outgoing_.front());
          outgoing_.pop_front();
        }
      }
      if (outgoing) send(*outgoing);
      if (Clock::now() < next_beat) continue;
      next_beat = Clock::now() + pause;
      if (node() == 0) {
        watch_others();
      } else {
        meeting_.client->add(fmt::format("hosts.beat.{}", node()), 1);
      }
    }
  } catch (const DistributedError& error) {
    lose_master(error.what());
  }
}

void HostLink::send(const Outgoing& outgoing) {
  if (!outgoing.event) return meeting_.client->set(outgoing.key, outgoing.value);
  append(*outgoing.event);
}

// Appends to the log, which others extend concurrently.
void HostLink::append(const HostEvent& event) {
  int life = 0;
  {
    const std::lock_guard lock(mutex_);
    life = life_;
  }
  if (life != writing_life_) next_number_ = 0;
  writing_life_ = life;
  const std::string text = encode(event);
  while (true) {
    const std::string key = event_key(life, next_number_++);
    // An equal text belongs to this event: an equal earlier event of this host has a lower number.
    if (meeting_.client->compare_set(key, "", text) == text) return;
  }
}

void HostLink::watch_others() {
  const auto now = Clock::now();
  // After a pause of this process (Ctrl-Z), missing heartbeats of the others are not meaningful.
  const bool was_paused = now - last_watch_ > host_timeout_ / 2;
  last_watch_ = now;
  const int64_t ended = meeting_.client->add(gone_key, 0);
  const bool some_ended = ended != ended_;
  ended_ = ended;
  for (int other = 1; other < static_cast<int>(beats_.size()); ++other) {
    Beat& beat = beats_[static_cast<size_t>(other)];
    const int64_t count = meeting_.client->add(fmt::format("hosts.beat.{}", other), 0);
    if (count != beat.count || was_paused) beat.changed = now;
    beat.count = count;
    if (some_ended) beat.ended = meeting_.client->add(fmt::format("{}.{}", gone_key, other), 0) > 0;
    const bool is_silent = beat.ended || now - beat.changed >= host_timeout_;
    if (!is_silent || beat.reported || !is_expected(other)) continue;
    beat.reported = true;
    const double seconds = std::chrono::duration<double>(host_timeout_).count();
    append(
        {Kind::lost, other, 1,
         beat.ended
             ? fmt::format("{} is lost: its launcher has ended", plan().describe(other))
             : fmt::format(
                   "{} is lost: no heartbeat for {} s; its launcher is stopped, or the network to it is down",
                   plan().describe(other), seconds)});
  }
}

// Whether more events of `other` are expected in this log.
bool HostLink::is_expected(int other) const {
  const std::lock_guard lock(mutex_);
  const auto node = static_cast<size_t>(other);
  return !stopped_.empty() && !lost_[node] && !stopped_[node];
}

}  // namespace stretto::launch
