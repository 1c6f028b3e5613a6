#include "stretto/nn/block_observer.h"

#include <functional>
#include <unordered_set>

namespace stretto::nn {

void Block::observe(BlockObserver* observer) {
  if (link_ != nullptr) *link_ = {};
  link_ = observer == nullptr ? nullptr : std::make_shared<Link>(Link{this, observer});
}

// Does not use named_modules(), which works only on modules that a shared_ptr owns.
std::vector<Block*> collect_blocks(torch::nn::Module& root) {
  std::vector<Block*> blocks;
  std::unordered_set<const torch::nn::Module*> seen;
  const std::function<void(torch::nn::Module&, const std::string&)> visit = [&](torch::nn::Module& module,
                                                                                const std::string& path) {
    if (!seen.insert(&module).second) return;
    if (auto* block = dynamic_cast<Block*>(&module)) {
      block->path_ = path;
      blocks.push_back(block);
    }
    for (const auto& child : module.named_children())
      visit(*child.value(), path.empty() ? child.key() : path + "." + child.key());
  };
  visit(root, "");
  return blocks;
}

}  // namespace stretto::nn
