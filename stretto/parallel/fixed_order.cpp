#include "stretto/parallel/fixed_order.h"

#include <algorithm>
#include <memory>

namespace stretto::parallel {
namespace {

int64_t middle_of(const Range& node) { return node.begin + node.size() / 2; }

void add_subtrees(const Range& node, const Range& part, std::vector<Range>& found) {
  const int64_t common = (node & part).size();
  if (common == 0) return;
  if (common == node.size()) return found.push_back(node);
  add_subtrees({node.begin, middle_of(node)}, part, found);
  add_subtrees({middle_of(node), node.end}, part, found);
}

// The root of a tree whose lower part has been summed.
class UpperTree {
 public:
  // `sums`: of the subtrees `nodes`, which are consecutive. Destroys them.
  UpperTree(std::vector<Range> nodes, std::vector<Tensor> sums)
      : nodes_(std::move(nodes)), sums_(std::move(sums)) {}

  Tensor root() { return sum_of({0, nodes_.back().end}); }

 private:
  Tensor sum_of(const Range& node) {
    if (nodes_[next_] == node) return sums_[next_++];
    const Tensor first = sum_of({node.begin, middle_of(node)});
    return first.add_(sum_of({middle_of(node), node.end}));
  }

  const std::vector<Range> nodes_;
  const std::vector<Tensor> sums_;
  size_t next_ = 0;
};

}  // namespace

std::vector<Range> subtrees(int64_t terms, const Range& part) {
  std::vector<Range> found;
  add_subtrees({0, terms}, part, found);
  return found;
}

Tensor sum_rows_in_fixed_order(const Tensor& rows) {
  std::vector<Range> nodes;
  for (int64_t row = 0; row < rows.size(0); ++row) nodes.push_back({row, row + 1});
  return UpperTree(std::move(nodes), rows.unbind()).root();
}

double sum_in_fixed_order(std::vector<double> terms) {
  const auto size = static_cast<int64_t>(terms.size());
  return sum_rows_in_fixed_order(at::from_blob(terms.data(), {size}, at::kDouble)).item<double>();
}

// Each rank sums one part of the elements, for which the others send theirs of each root.
Work sum_in_fixed_order(Group& group, int64_t terms, const std::vector<Tensor>& roots) {
  if (group.size() == 1) return {};
  const int64_t ranks = group.size(), count = roots[0].numel(), part = (count + ranks - 1) / ranks;
  std::vector<std::vector<Range>> nodes;  // by rank
  for (int64_t rank = 0; rank < ranks; ++rank)
    nodes.push_back(subtrees(terms, part_range(terms, ranks, rank)));
  const auto most = std::ssize(*std::ranges::max_element(nodes, {}, &std::vector<Range>::size));

  const Tensor values = roots.back().view({count});
  const bool in_place = most == 1 && part * ranks == count;
  const Tensor padded =
      in_place ? values.view({1, count}) : at::zeros({most, part * ranks}, values.options());
  for (size_t root = 0; !in_place && root < roots.size(); ++root)
    padded[static_cast<int64_t>(root)].slice(0, 0, count).copy_(roots[root].view({count}));
  const Tensor sent = padded.view({most, ranks, part}).transpose(0, 1).contiguous();
  const Tensor received = at::empty_like(sent);
  auto exchange = std::make_shared<Work>(group.all_to_all(received, sent));
  const auto finish = [&group, values, sent, received, exchange, nodes, count, in_place] {
    exchange->wait();
    std::vector<Range> all;
    std::vector<Tensor> sums;
    for (size_t rank = 0; rank < nodes.size(); ++rank) {
      all.insert(all.end(), nodes[rank].begin(), nodes[rank].end());
      const auto of_rank = received[static_cast<int64_t>(rank)].unbind();
      sums.insert(sums.end(), of_rank.begin(), of_rank.begin() + std::ssize(nodes[rank]));
    }
    const Tensor sum = UpperTree(std::move(all), std::move(sums)).root();
    const Tensor whole = in_place ? values : at::empty({sum.numel() * group.size()}, sum.options());
    group.all_gather(whole, sum).wait();
    if (!in_place) Tensor(values).copy_(whole.slice(0, 0, count));
  };
  return {finish, "sum in fixed order", roots};
}

FixedOrderSum::FixedOrderSum(Tensor buffer, int64_t terms, int ranks, int rank)
    : buffer_(std::move(buffer)),
      terms_(terms),
      own_(part_range(terms, ranks, rank)),
      idle_passes_((terms + ranks - 1) / ranks - own_.size()),
      taken_(-idle_passes_) {}

// The number of sums of this rank's subtrees that a term completes.
int FixedOrderSum::sums_completed_by(int64_t term) const {
  int completed = 0;
  for (Range node = {0, terms_}; node.size() > 1;) {
    completed += node.end == term + 1 && node.begin >= own_.begin;
    (term < middle_of(node) ? node.end : node.begin) = middle_of(node);
  }
  return completed;
}

void FixedOrderSum::take() {
  if (taken_++ < 0) return;
  const auto completed = static_cast<size_t>(sums_completed_by(own_.begin + taken_ - 1));
  for (size_t sum = 0; sum < completed; ++sum) buffer_.add_(sums_[--open_]);
  if (open_ == sums_.size()) sums_.push_back(at::empty_like(buffer_));
  sums_[open_++].copy_(buffer_);
  buffer_.zero_();
}

std::vector<Tensor> FixedOrderSum::roots(const Range& range) {
  const Tensor last = buffer_.slice(0, range.begin, range.end);
  size_t roots = open_;
  for (int completed = sums_completed_by(own_.end - 1); completed > 0; --completed)
    last.add_(sums_[--roots].slice(0, range.begin, range.end));
  std::vector<Tensor> all;
  for (size_t root = 0; root < roots; ++root) all.push_back(sums_[root].slice(0, range.begin, range.end));
  all.push_back(last);
  return all;
}

int64_t FixedOrderSum::stored() const {
  int64_t most = 0, open = 0;
  for (int64_t term = own_.begin; term + 1 < own_.end; ++term) {
    open += 1 - sums_completed_by(term);
    most = std::max(most, open);
  }
  return most;
}

}  // namespace stretto::parallel
