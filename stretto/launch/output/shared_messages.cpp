#include "stretto/launch/output/shared_messages.h"

#include <algorithm>

#include <fmt/ranges.h>

namespace stretto::launch {
namespace {

constexpr auto hold = std::chrono::milliseconds(200);
constexpr auto memory = std::chrono::seconds(10);  // after that the same text is shown again
constexpr size_t longest_memory = 64;

std::string mark(std::vector<int> ranks) {
  constexpr size_t named = 8;
  std::ranges::sort(ranks);
  const auto [first_equal, end] = std::ranges::unique(ranks);
  ranks.erase(first_equal, end);
  const size_t more = ranks.size() - std::min(ranks.size(), named);
  ranks.resize(std::min(ranks.size(), named));
  return fmt::format("[rank{} {}{}]", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

void SharedMessages::add(int rank, std::string_view text, Clock::time_point now) {
  if (was_shown(text, now)) return;
  const auto same = std::ranges::find(held_, text, &Message::text);
  if (same != held_.end()) {
    same->ranks.push_back(rank);
  } else {
    held_.push_back({std::string(text), {rank}, now + hold});
  }
}

void SharedMessages::shown_by_rank_0(std::string_view text, Clock::time_point now) {
  std::erase_if(held_, [&](const Message& message) { return message.text == text; });
  remember(text, now);
}

std::optional<SharedMessages::Clock::time_point> SharedMessages::next_due() const {
  if (held_.empty()) return std::nullopt;
  return held_.front().due;
}

std::vector<std::string> SharedMessages::take_due(Clock::time_point now) {
  std::vector<std::string> due;
  while (!held_.empty() && held_.front().due <= now) due.push_back(take_first(now));
  return due;
}

std::vector<std::string> SharedMessages::take_all(Clock::time_point now) {
  std::vector<std::string> all;
  while (!held_.empty()) all.push_back(take_first(now));
  return all;
}

void SharedMessages::drop_unless(const std::function<bool(int rank)>& keep) {
  std::erase_if(held_, [&](const Message& message) { return std::ranges::none_of(message.ranks, keep); });
}

bool SharedMessages::was_shown(std::string_view text, Clock::time_point now) {
  while (!shown_.empty() && now - shown_.front().time > memory) shown_.pop_front();
  return std::ranges::find(shown_, text, &Shown::text) != shown_.end();
}

void SharedMessages::remember(std::string_view text, Clock::time_point now) {
  shown_.push_back({std::string(text), now});
  if (shown_.size() > longest_memory) shown_.pop_front();
}

std::string SharedMessages::take_first(Clock::time_point now) {
  const Message message = std::move(held_.front());
  held_.pop_front();
  remember(message.text, now);
  return fmt::format("{} {}", mark(message.ranks), message.text);
}

}  // namespace stretto::launch
