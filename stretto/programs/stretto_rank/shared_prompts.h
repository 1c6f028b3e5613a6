#pragma once

#include <functional>
#include <string>
#include <vector>

#include "stretto/comm/group.h"
#include "stretto/generate/options.h"

namespace stretto::rank {

// Distributes prompts, which rank 0 reads, over the ranks of a group: prompt i is continued by rank i % size.
// This happens in rounds of a limited number of prompts, so memory does not grow with their number. Each
// member function is collective.
class SharedPrompts {
 public:
  // Continues the prompts `texts` on this rank, and adds the continuations of each to `found`, in order; the
  // first one has the number `first`, the next ones each a number that is larger by `stride`. Throws
  // DataError for a prompt that it cannot continue.
  using Continue = std::function<void(const std::vector<std::string>& texts, int64_t first, int64_t stride,
                                      std::vector<std::vector<GeneratedText>>& found)>;
  // Receives the continuations of each prompt on rank 0, in the order of the prompts.
  using OnText = std::function<void(const std::string& prompt, const std::vector<GeneratedText>& found)>;

  // `batch_size`: the number of prompts that a rank continues at a time.
  SharedPrompts(Group& group, int64_t batch_size, Continue continue_texts, OnText on_text);

  // On rank 0: adds a prompt. If a rank cannot continue a prompt, throws DataError after the continuations of
  // the prompts before it.
  void add(std::string text);
  // On rank 0: continues the remaining prompts. Throws like add().
  void finish();
  // On rank 0: ends serve() on the other ranks.
  void end();
  // On the other ranks: takes part until rank 0 calls end().
  void serve();

 private:
  bool run_round(const std::vector<std::string>& texts);

  Group& group_;
  size_t round_;  // the largest number of prompts per round
  Continue continue_;
  OnText on_text_;
  std::vector<std::string> waiting_;
  int64_t first_ = 0;  // the number of the round's first prompt
};

}  // namespace stretto::rank
