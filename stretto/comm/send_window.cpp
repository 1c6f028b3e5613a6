#include "stretto/comm/send_window.h"

namespace stretto::comm {

bool SendWindow::allows(int tag, uint64_t bytes) const {
  const auto found = tags_.find(tag);
  return (found != tags_.end() && found->second.asked > 0) || fits(ahead_, bytes);
}

void SendWindow::add(int tag, uint64_t bytes) {
  Tag& state = tags_[tag];
  if (state.asked == 0) {
    state.ahead.push_back(cost(bytes));
    ahead_ += cost(bytes);
  } else if (--state.asked == 0) {
    tags_.erase(tag);
  }
}

void SendWindow::asked(int tag, uint64_t receives) {
  Tag& state = tags_[tag];
  for (; receives > 0 && !state.ahead.empty(); --receives) {
    ahead_ -= state.ahead.front();
    state.ahead.pop_front();
  }
  state.asked += receives;
  if (state.asked == 0 && state.ahead.empty()) tags_.erase(tag);
}

}  // namespace stretto::comm
