#include <algorithm>
#include <utility>

#include <torch/csrc/autograd/engine.h>

#include "stretto/nn/block_observer.h"

namespace stretto::nn {

// The backward of one pass. It may run several times (retain_graph).
class BlockPass::Backward : public std::enable_shared_from_this<BlockPass::Backward> {
 public:
  explicit Backward(std::shared_ptr<Block::Link> link) : link_(std::move(link)) {}

  void add_argument() { ++arguments_; }

  void begin() {
    if (running_ || link_->observer == nullptr) return;
    link_->observer->before_backward(*link_->block);
    running_ = true;
    arguments_left_ = arguments_;
    // autograd drops its callbacks, called or not, when backward returns or throws.
    auto at_end = std::make_shared<End>(shared_from_this());
    torch::autograd::Engine::get_default_engine().queue_callback([at_end] { at_end->backward->end(); });
  }

  void argument_done() {
    if (running_ && --arguments_left_ == 0) end();
  }

  void end() {
    if (!std::exchange(running_, false)) return;
    if (link_->observer != nullptr) link_->observer->after_backward(*link_->block);
  }

 private:
  struct End {
    explicit End(std::shared_ptr<Backward> which) : backward(std::move(which)) {}
    End(const End&) = delete;
    End& operator=(const End&) = delete;
    ~End() { backward->end(); }
    std::shared_ptr<Backward> backward;
  };

  std::shared_ptr<Block::Link> link_;
  int arguments_ = 0, arguments_left_ = 0;
  bool running_ = false;
};

BlockPass::BlockPass(std::shared_ptr<Block::Link> link) : link_(std::move(link)) {
  link_->observer->before_forward(*link_->block);
  if (at::GradMode::is_enabled()) backward_ = std::make_shared<Backward>(link_);
}

BlockPass::~BlockPass() {
  if (link_->observer != nullptr) link_->observer->after_forward(*link_->block);
}

void BlockPass::watch_argument(Tensor& argument) {
  if (backward_ == nullptr || !argument.defined() || !argument.requires_grad()) return;
  argument = argument.view_as(argument);
  arguments_.push_back(argument.grad_fn().get());
  outside_.push_back(argument._base().grad_fn().get());
  backward_->add_argument();
  argument.register_hook([backward = backward_](const Tensor&) { backward->argument_done(); });
}

void BlockPass::watch_result(Tensor& result) {
  if (backward_ == nullptr || !result.defined() || !result.requires_grad()) return;
  // A hook on a leaf would outlive this pass, and one on an argument that is passed through would come too
  // late.
  const auto* node = result.grad_fn().get();
  if (node == nullptr || std::ranges::find(arguments_, node) != arguments_.end())
    result = result.view_as(result);
  const auto begin = [backward = backward_](const Tensor&) { backward->begin(); };
  result.register_hook(begin);
  if (!result.is_view()) return;
  // Modifying a view in place changes its node; its base keeps the node of this block.
  const Tensor base(result._base());
  const auto* node_of_base = base.grad_fn().get();
  if (node_of_base != nullptr && std::ranges::find(outside_, node_of_base) == outside_.end())
    base.register_hook(begin);
}

}  // namespace stretto::nn
