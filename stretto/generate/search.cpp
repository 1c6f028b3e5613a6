#include "stretto/generate/search.h"

#include <algorithm>

#include "stretto/generate/beam_search.h"
#include "stretto/generate/search_end.h"
#include "stretto/generate/token_search.h"

namespace stretto::generate {

bool has_ended(const GenerationOptions& options, const SearchEvents& events, const SearchStart& start,
               const std::vector<int32_t>& new_tokens) {
  return std::ssize(new_tokens) >= start.max_new_tokens ||
         std::ranges::find(options.eos_token_id, new_tokens.back()) != options.eos_token_id.end() ||
         (events.is_end && events.is_end(start.index, new_tokens));
}

std::unique_ptr<Search> make_search(const GenerationOptions& options, const SearchEvents& events,
                                    SearchStart start) {
  if (options.num_beams > 1) return std::make_unique<BeamSearch>(options, events, std::move(start));
  return std::make_unique<TokenSearch>(options, events, std::move(start));
}

}  // namespace stretto::generate
