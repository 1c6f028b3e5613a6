#include "stretto/nn/tensor_parallel.h"

#include <algorithm>

#include "stretto/base/error.h"
#include "stretto/base/range.h"
#include "stretto/comm/mesh.h"
#include "stretto/nn/saved_group.h"

namespace stretto::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor summed(const Tensor& x, Group& ranks) {
  const Tensor sum = ranks.scratch(x.sizes(), x.scalar_type());
  sum.copy_(x);
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

// The rows of all ranks.
Tensor joined(const Tensor& rows, Group& ranks) {
  std::vector<int64_t> sizes = rows.sizes().vec();
  sizes.at(0) *= ranks.size();
  const Tensor all = at::empty(sizes, rows.options());
  ranks.all_gather(all, rows.contiguous()).wait();
  return all;
}

// This rank's rows of x.
Tensor own_part(const Tensor& x, const Group& ranks) {
  if (x.size(0) % ranks.size() != 0)
    throw ShapeError("{} rows cannot be divided evenly among {} ranks (tp); pad them to a multiple",
                     x.size(0), ranks.size());
  const int64_t rows = x.size(0) / ranks.size();
  return x.slice(0, ranks.rank() * rows, (ranks.rank() + 1) * rows);
}

// This rank's rows of the sum of all x.
Tensor own_part_of_sum(const Tensor& x, Group& ranks) {
  const Tensor sum = at::empty(own_part(x, ranks).sizes(), x.options());
  ranks.reduce_scatter(sum, x.contiguous()).wait();
  return sum;
}

struct OwnRows : torch::autograd::Function<OwnRows> {
  static Tensor forward(AutogradContext* context, const Tensor& x, Group* ranks) {
    save_group(context, ranks);
    return own_part(x, *ranks).clone(at::MemoryFormat::Contiguous);
  }
  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    return {joined(outputs[0], *saved_group(*context)), Tensor()};
  }
};

struct JoinRows : torch::autograd::Function<JoinRows> {
  static Tensor forward(AutogradContext* context, const Tensor& x, Group* ranks, bool to_parts) {
    save_group(context, ranks);
    context->saved_data["to_parts"] = to_parts;
    return joined(x, *ranks);
  }
  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    Group& ranks = *saved_group(*context);
    const bool to_parts = context->saved_data["to_parts"].toBool();
    return {to_parts ? own_part_of_sum(outputs[0], ranks) : own_part(outputs[0], ranks).contiguous(),
            Tensor(), Tensor()};
  }
};

struct OwnRowsOfSum : torch::autograd::Function<OwnRowsOfSum> {
  static Tensor forward(AutogradContext* context, const Tensor& x, Group* ranks) {
    save_group(context, ranks);
    return own_part_of_sum(x, *ranks);
  }
  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    return {joined(outputs[0], *saved_group(*context)), Tensor()};
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

TensorParallel TensorParallel::of(const AxisRanks& ranks) { return {&ranks.group(), ranks.divides_rows()}; }

int TensorParallel::size() const { return ranks == nullptr ? 1 : ranks->size(); }
int TensorParallel::position() const { return ranks == nullptr ? 0 : ranks->rank(); }

Range TensorParallel::part(int64_t units, int of, int copies) const {
  const int64_t parts = size() / copies, index = of / copies;
  const int64_t each = units / parts, longer = units % parts;
  const int64_t begin = index * each + std::min(index, longer);
  return {begin, begin + each + (index < longer ? 1 : 0)};
}

Range TensorParallel::part(int64_t units) const { return part(units, position()); }
int64_t TensorParallel::first(int64_t units) const { return part(units).begin; }
int64_t TensorParallel::count(int64_t units) const { return part(units).size(); }

Tensor to_parts(const Tensor& x, Group& ranks) { return ranks.size() == 1 ? x : ToParts::apply(x, &ranks); }

Tensor sum_of_parts(const Tensor& x, Group& ranks) {
  return ranks.size() == 1 ? x : SumOfParts::apply(x, &ranks);
}

Tensor own_rows(const Tensor& x, const TensorParallel& ranks) {
  return ranks.divides_rows() ? OwnRows::apply(x, ranks.ranks) : x;
}

Tensor join_rows(const Tensor& x, const TensorParallel& ranks) {
  return ranks.divides_rows() ? JoinRows::apply(x, ranks.ranks, /*to_parts=*/false) : x;
}

Tensor join_rows_to_parts(const Tensor& x, Group& ranks) {
  return ranks.size() == 1 ? x : JoinRows::apply(x, &ranks, /*to_parts=*/true);
}

Tensor own_rows_of_sum(const Tensor& x, Group& ranks) {
  return ranks.size() == 1 ? x : OwnRowsOfSum::apply(x, &ranks);
}

Tensor join_columns(const Tensor& x, int64_t columns, const TensorParallel& ranks) {
  return ranks.divides() ? JoinColumns::apply(x, columns, ranks) : x;
}

}  // namespace stretto::nn
