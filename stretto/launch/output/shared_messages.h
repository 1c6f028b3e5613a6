#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::launch {

// Holds back warnings and errors of ranks other than 0 for a moment, so that a message that several ranks log
// is shown once, with all their numbers, or not at all if rank 0, whose output is forwarded unchanged, has
// logged it.
class SharedMessages {
 public:
  using Clock = std::chrono::steady_clock;

  void add(int rank, std::string_view text, Clock::time_point now);
  void shown_by_rank_0(std::string_view text, Clock::time_point now);

  std::optional<Clock::time_point> next_due() const;

  // The messages that have been held back long enough, oldest first: "[rank 1] low memory", "[ranks 1, 3] low
  // memory".
  std::vector<std::string> take_due(Clock::time_point now);
  std::vector<std::string> take_all(Clock::time_point now);

  // Drops messages that only ranks rejected by `keep` have logged.
  void drop_unless(const std::function<bool(int rank)>& keep);

 private:
  struct Message {
    std::string text;
    std::vector<int> ranks;
    Clock::time_point due;
  };
  struct Shown {
    std::string text;
    Clock::time_point time;
  };
  bool was_shown(std::string_view text, Clock::time_point now);
  void remember(std::string_view text, Clock::time_point now);
  std::string take_first(Clock::time_point now);

  std::deque<Message> held_;
  std::deque<Shown> shown_;
};

}  // namespace stretto::launch
