#include "stretto/generate/search.h"

#include <algorithm>

#include "stretto/generate/beam_search.h"
#include "stretto/generate/token_search.h"

namespace stretto::generate {

std::vector<int32_t> Search::text(const std::vector<int32_t>& new_tokens) const {
  std::vector<int32_t> all = start_.prompt;
  all.insert(all.end(), new_tokens.begin(), new_tokens.end());
  return all;
}

bool Search::has_ended(const std::vector<int32_t>& new_tokens) const {
  return std::ssize(new_tokens) >= start_.max_new_tokens ||
         std::ranges::find(options_.eos_token_id, new_tokens.back()) != options_.eos_token_id.end() ||
         (events_.is_end && events_.is_end(start_.index, new_tokens));
}

std::unique_ptr<Search> make_search(const GenerationOptions& options, const SearchEvents& events,
                                    SearchStart start) {
  if (options.num_beams > 1) return std::make_unique<BeamSearch>(options, events, std::move(start));
  return std::make_unique<TokenSearch>(options, events, std::move(start));
}

}  // namespace stretto::generate
