#pragma once

#include <string>
#include <vector>

namespace stretto {

// "rank 3" or "ranks 0, 2"; at most eight ranks are listed.
std::string rank_list(const std::vector<int>& ranks);

}  // namespace stretto
