#include "stretto/nn/tensor_parallel.h"

#include <algorithm>

#include "stretto/base/range.h"
#include "stretto/comm/group.h"
#include "stretto/nn/saved_group.h"

namespace stretto::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor summed(const Tensor& x, Group& ranks) {
  const Tensor sum = x.clone(at::MemoryFormat::Contiguous);
  ranks.all_reduce(sum).wait();
  return sum;
}

struct ToParts : torch::autograd::Function<ToParts> {
  static Tensor forward(AutogradContext* context, const Tensor& x, Group* ranks) {
    save_group(context, ranks);
    return x.view_as(x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    return {summed(outputs[0], *saved_group(*context)), Tensor()};
  }
};

struct SumOfParts : torch::autograd::Function<SumOfParts> {
  static Tensor forward(AutogradContext*, const Tensor& x, Group* ranks) { return summed(x, *ranks); }
  static variable_list backward(AutogradContext*, const variable_list& outputs) {
    return {outputs[0], Tensor()};
  }
};

struct JoinColumns : torch::autograd::Function<JoinColumns> {
  static Tensor forward(AutogradContext* context, const Tensor& x, int64_t columns,
                        const TensorParallel& ranks) {
    const int64_t rows = x.size(0), largest = ranks.part(columns, 0).size();
    const Tensor own = at::zeros({rows, largest}, x.options());
    own.slice(1, 0, x.size(1)).copy_(x);
    const Tensor all = at::empty({ranks.size() * rows, largest}, x.options());
    ranks.ranks->all_gather(all, own).wait();
    std::vector<Tensor> parts;
    for (int of = 0; of < ranks.size(); ++of)
      parts.push_back(all.slice(0, of * rows, (of + 1) * rows).slice(1, 0, ranks.part(columns, of).size()));
    context->saved_data["begin"] = ranks.part(columns).begin;
    context->saved_data["end"] = ranks.part(columns).end;
    return at::cat(parts, 1);
  }
  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const int64_t begin = context->saved_data["begin"].toInt(), end = context->saved_data["end"].toInt();
    return {outputs[0].slice(1, begin, end).contiguous(), Tensor(), Tensor()};
  }
};

}  // namespace

int TensorParallel::size() const { return ranks == nullptr ? 1 : ranks->size(); }
int TensorParallel::position() const { return ranks == nullptr ? 0 : ranks->rank(); }

Range TensorParallel::part(int64_t units, int of, int copies) const {
  const int64_t parts = size() / copies, index = of / copies;
  const int64_t each = units / parts, longer = units % parts;
  const int64_t begin = index * each + std::min(index, longer);
  return {begin, begin + each + (index < longer ? 1 : 0)};
}

Range TensorParallel::part(int64_t units) const { return part(units, position()); }

Tensor to_parts(const Tensor& x, Group& ranks) { return ranks.size() == 1 ? x : ToParts::apply(x, &ranks); }

Tensor sum_of_parts(const Tensor& x, Group& ranks) {
  return ranks.size() == 1 ? x : SumOfParts::apply(x, &ranks);
}

Tensor join_columns(const Tensor& x, int64_t columns, const TensorParallel& ranks) {
  return ranks.divides() ? JoinColumns::apply(x, columns, ranks) : x;
}

}  // namespace stretto::nn
