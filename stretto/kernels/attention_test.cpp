#include "stretto/kernels/attention.h"

#include <limits>

#include "stretto/base/error.h"
#include "stretto/kernels/each_target_support.h"

namespace stretto::kernels {
namespace {

class AttentionKernel : public ::testing::TestWithParam<Precision> {};

struct Inputs {
  Tensor q, k, v, grad;
  AttentionSequences sequences;
};

Tensor bounds_of(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> bounds = {0};
  for (const int64_t length : lengths) bounds.push_back(bounds.back() + length);
  return at::tensor(bounds);
}

Inputs make_inputs(const std::vector<int64_t>& queries, const std::vector<int64_t>& keys, int64_t heads,
                   int64_t width, at::ScalarType dtype) {
  at::manual_seed(width);
  Inputs inputs;
  const Tensor samples = at::arange(std::ssize(keys)) * (int64_t{1} << 33) + 5;
  inputs.sequences = {bounds_of(queries), bounds_of(keys), samples, at::zeros_like(samples)};
  const auto rows = [&](const Tensor& bounds) {
    return (at::randn({bounds[-1].item<int64_t>(), heads, width}, at::kDouble) * 1.5).to(dtype);
  };
  inputs.q = rows(inputs.sequences.query_bounds);
  inputs.k = rows(inputs.sequences.key_bounds);
  inputs.v = rows(inputs.sequences.key_bounds);
  inputs.grad = rows(inputs.sequences.query_bounds);
  return inputs;
}

AttentionGradients backward(const Inputs& inputs, const AttentionResult& result, const Dropout& dropout) {
  const AttentionGradients gradients = {at::empty_like(inputs.q), at::empty_like(inputs.k),
                                        at::empty_like(inputs.v)};
  attention_backward(inputs.grad, result, inputs.q, inputs.k, inputs.v, inputs.sequences, dropout, gradients);
  return gradients;
}

// The reference computes the same values at higher precision; the loops of each target are compared with it.
void compare(const Inputs& inputs, const Dropout& dropout, const Precision& wanted) {
  const auto wide = wanted.dtype == at::kDouble ? at::kDouble : at::kFloat;
  const auto leaf = [&](const Tensor& x) { return x.to(wide).detach().clone().requires_grad_(); };
  Tensor q = leaf(inputs.q), k = leaf(inputs.k), v = leaf(inputs.v);
  const Tensor reference = attention_reference(q, k, v, inputs.sequences, dropout);
  reference.backward(inputs.grad.to(wide));
  for_each_target([&] {
    const auto result = attention(inputs.q, inputs.k, inputs.v, inputs.sequences, dropout);
    const auto gradients = backward(inputs, result, dropout);
    EXPECT_LT(difference(result.rows, reference.detach()), wanted.tolerance);
    EXPECT_LT(difference(gradients.q, q.grad()), wanted.tolerance);
    EXPECT_LT(difference(gradients.k, k.grad()), wanted.tolerance);
    EXPECT_LT(difference(gradients.v, v.grad()), wanted.tolerance);
  });
}

TEST_P(AttentionKernel, EqualsReferenceForAnyLengthsAndWidths) {
  const std::vector<int64_t> lengths = {1, 13, 2, 16, 17, 63, 64, 65, 200, 3};
  for (const int64_t width : {1, 5, 16, 32, 40, 64}) {
    for (const double p : {0.0, 0.3}) {
      SCOPED_TRACE("width " + std::to_string(width) + ", p " + std::to_string(p));
      compare(make_inputs(lengths, lengths, 3, width, GetParam().dtype), {p, 0x123456789abcdef}, GetParam());
    }
  }
}

TEST_P(AttentionKernel, EqualsReferenceForSomeOfTheQueries) {
  compare(make_inputs({1, 1, 1}, {9, 130, 1}, 2, 24, GetParam().dtype), {0.2, 9}, GetParam());
}

TEST_P(AttentionKernel, CausalQueriesAttendToKeysUpToTheirPosition) {
  const std::vector<int64_t> lengths = {1, 13, 2, 16, 17, 63, 64, 65, 200, 3};
  for (const double p : {0.0, 0.3}) {
    Inputs inputs = make_inputs(lengths, lengths, 3, 24, GetParam().dtype);
    inputs.sequences.causal = true;
    compare(inputs, {p, 0x123456789abcdef}, GetParam());
  }
  Inputs inputs = make_inputs({70}, {70}, 1, 8, at::kDouble);
  inputs.sequences.causal = true;
  const Tensor before = attention(inputs.q, inputs.k, inputs.v, inputs.sequences, {}).rows;
  inputs.k.slice(0, 40).fill_(9);
  inputs.v.slice(0, 40).fill_(9);
  const Tensor after = attention(inputs.q, inputs.k, inputs.v, inputs.sequences, {}).rows;
  EXPECT_TRUE(at::equal(before.slice(0, 0, 40), after.slice(0, 0, 40)));
  EXPECT_FALSE(at::allclose(before.slice(0, 40), after.slice(0, 40)));
}

// Windows below, at and above the sizes of tiles. A window longer than the sequence hides no key.
TEST_P(AttentionKernel, AWindowHidesDistantKeys) {
  const std::vector<int64_t> lengths = {1, 13, 17, 63, 65, 200, 3};
  Inputs inputs = make_inputs(lengths, lengths, 2, 24, GetParam().dtype);
  inputs.sequences.causal = true;
  const Tensor all = attention(inputs.q, inputs.k, inputs.v, inputs.sequences, {}).rows;
  for (const int64_t window : {2, 5, 16, 64, 70, 130}) {
    SCOPED_TRACE("window " + std::to_string(window));
    inputs.sequences.window = window;
    for (const double p : {0.0, 0.3}) compare(inputs, {p, 0x123456789abcdef}, GetParam());
  }
  inputs.sequences.window = 200;
  EXPECT_TRUE(at::equal(attention(inputs.q, inputs.k, inputs.v, inputs.sequences, {}).rows, all));
  inputs.sequences.window = 100;
  EXPECT_FALSE(at::equal(attention(inputs.q, inputs.k, inputs.v, inputs.sequences, {}).rows, all));
}

// Several heads of queries share a head of keys, and scores have a given scale.
TEST_P(AttentionKernel, HeadsAreGroupedAndScoresScaled) {
  const std::vector<int64_t> lengths = {1, 13, 2, 65, 130};
  for (const int64_t key_heads : {1, 2, 3}) {
    Inputs inputs = make_inputs(lengths, lengths, 6, 24, GetParam().dtype);
    inputs.k = inputs.k.slice(1, 0, key_heads).contiguous();
    inputs.v = inputs.v.slice(1, 6 - key_heads).contiguous();
    inputs.sequences.causal = true;
    inputs.sequences.scale = 0.4;
    for (const double p : {0.0, 0.3}) compare(inputs, {p, 0x123456789abcdef}, GetParam());
  }
}

// Queries, keys and values are columns of one tensor, and so are their gradients.
TEST_P(AttentionKernel, RowsMayBeColumnsOfOneTensor) {
  const Inputs plain = make_inputs({9, 70}, {9, 70}, 2, 24, GetParam().dtype);
  const auto columns = [](const Tensor& all, int64_t part) {
    return all.slice(1, part * 48, (part + 1) * 48).view({-1, 2, 24});
  };
  const Tensor joined = at::cat({plain.q.flatten(1), plain.k.flatten(1), plain.v.flatten(1)}, 1);
  const Tensor gradients = at::zeros_like(joined);
  Inputs inputs = plain;
  inputs.q = columns(joined, 0), inputs.k = columns(joined, 1), inputs.v = columns(joined, 2);
  const auto result = attention(inputs.q, inputs.k, inputs.v, inputs.sequences, {});
  attention_backward(inputs.grad, result, inputs.q, inputs.k, inputs.v, inputs.sequences, {},
                     {columns(gradients, 0), columns(gradients, 1), columns(gradients, 2)});
  const auto wanted = attention(plain.q, plain.k, plain.v, plain.sequences, {});
  const auto of_parts = backward(plain, wanted, {});
  EXPECT_TRUE(at::equal(result.rows, wanted.rows));
  EXPECT_TRUE(at::equal(gradients,
                        at::cat({of_parts.q.flatten(1), of_parts.k.flatten(1), of_parts.v.flatten(1)}, 1)));
}

// Computing the last queries alone gives the same rows as computing all queries, with the same dropout.
TEST_P(AttentionKernel, LastQueriesEqualThoseOfAll) {
  for (const bool causal : {false, true}) {
    const std::vector<int64_t> lengths = {9, 130, 1};
    Inputs all = make_inputs(lengths, lengths, 2, 24, GetParam().dtype);
    all.sequences.causal = causal;
    const Dropout dropout = {0.2, 9};
    const Tensor whole = attention(all.q, all.k, all.v, all.sequences, dropout).rows;
    const Tensor last = all.sequences.key_bounds.slice(0, 1) - 1;
    Inputs few = all;
    few.q = all.q.index_select(0, last);
    few.grad = all.grad.index_select(0, last);
    few.sequences.query_bounds = bounds_of({1, 1, 1});
    few.sequences.queries_are_last = true;
    compare(few, dropout, GetParam());
    EXPECT_LT(
        difference(attention(few.q, few.k, few.v, few.sequences, dropout).rows, whole.index_select(0, last)),
        GetParam().tolerance);
  }
}

// Sequences with one query, whose keys are rows in any order, are computed by loops of their own
// (cpu/one_query_loops.h).
TEST_P(AttentionKernel, OneQueryPerSequenceEqualsReference) {
  const auto expect_equal = [](Inputs inputs) {
    const auto wide = GetParam().dtype == at::kDouble ? at::kDouble : at::kFloat;
    const Tensor wanted =
        attention_reference(inputs.q.to(wide), inputs.k.to(wide), inputs.v.to(wide), inputs.sequences, {});
    const Tensor order = at::randperm(inputs.k.size(0));
    inputs.sequences.key_rows = at::argsort(order);
    inputs.k = inputs.k.index_select(0, order);
    inputs.v = inputs.v.index_select(0, order);
    const Tensor found = attention(inputs.q, inputs.k, inputs.v, inputs.sequences, {}).rows;
    EXPECT_LT(difference(found, wanted), GetParam().tolerance);
  };
  for_each_target([&] {
    for (const int64_t width : {1, 5, 24, 64}) {
      for (const int64_t window : {0, 5, 70}) {
        SCOPED_TRACE("width " + std::to_string(width) + ", window " + std::to_string(window));
        Inputs inputs =
            make_inputs({1, 1, 1, 1, 1, 1, 1}, {1, 9, 63, 64, 65, 130, 3}, 6, width, GetParam().dtype);
        inputs.k = inputs.k.slice(1, 0, 2).contiguous();
        inputs.v = inputs.v.slice(1, 4).contiguous();
        inputs.sequences.causal = true;
        inputs.sequences.queries_are_last = true;
        inputs.sequences.window = window;
        inputs.sequences.scale = 0.4;
        expect_equal(inputs);
      }
    }
  });
  Inputs first = make_inputs({1, 0, 1}, {4, 2, 7}, 2, 8, GetParam().dtype);
  for (const bool causal : {false, true}) {
    first.sequences.causal = causal;
    expect_equal(first);
  }
}

// Rows after the last sequence have no effect, whatever they contain, and their results are zeros.
TEST_P(AttentionKernel, PaddingIsIgnored) {
  const double unread = std::numeric_limits<double>::quiet_NaN();
  const auto padded = [&](const Tensor& x) {
    return at::cat({x, at::full({4, x.size(1), x.size(2)}, unread, x.options())});
  };
  for_each_target([&] {
    const Dropout dropout = {0.2, 9};
    const Inputs plain = make_inputs({3, 17}, {3, 17}, 2, 24, GetParam().dtype);
    const auto run = [&](const Inputs& inputs) {
      const auto result = attention(inputs.q, inputs.k, inputs.v, inputs.sequences, dropout);
      const auto gradients = backward(inputs, result, dropout);
      return std::vector{result.rows, gradients.q, gradients.k, gradients.v};
    };
    const Inputs wide = {padded(plain.q), padded(plain.k), padded(plain.v), padded(plain.grad),
                         plain.sequences};
    const auto wanted = run(plain), found = run(wide);
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_TRUE(at::equal(found[i].slice(0, 0, 20), wanted[i]));
      EXPECT_EQ(found[i].slice(0, 20).abs().max().item<double>(), 0);
    }
    const Tensor reference = attention_reference(wide.q, wide.k, wide.v, wide.sequences, dropout);
    EXPECT_LT(difference(reference, found[0]), GetParam().tolerance);
  });
}

// GPUs compute attention with dropout in this way: the products and the weights have the type of q, too.
TEST_P(AttentionKernel, OperatorsComputeInEachType) {
  Inputs inputs = make_inputs({3, 17, 64}, {3, 17, 64}, 2, 24, GetParam().dtype);
  inputs.sequences.causal = true;
  const auto run = [&](at::ScalarType dtype) {
    const auto leaf = [&](const Tensor& x) { return x.to(dtype).detach().clone().requires_grad_(); };
    const Tensor q = leaf(inputs.q), k = leaf(inputs.k), v = leaf(inputs.v);
    const Tensor rows = attention_by_operators(q, k, v, inputs.sequences, {84, 84, 64, 64}, {0.2, 9}, dtype);
    EXPECT_EQ(rows.scalar_type(), dtype);
    rows.backward(inputs.grad.to(dtype));
    return std::vector{rows.detach(), q.grad(), k.grad(), v.grad()};
  };
  const auto wanted = run(at::kDouble), found = run(GetParam().dtype);
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_LT(difference(found[i], wanted[i]), 3 * GetParam().tolerance) << i;
}

INSTANTIATE_TEST_SUITE_P(Dtypes, AttentionKernel,
                         ::testing::Values(Precision{at::kDouble, 1e-12}, Precision{at::kFloat, 1e-5},
                                           Precision{at::kBFloat16, 2e-2}, Precision{at::kHalf, 4e-3}));

TEST(AttentionKernel, RefusesMismatchedShapes) {
  const Inputs good = make_inputs({2, 3}, {2, 3}, 2, 4, at::kFloat);
  const auto refuses = [](const Inputs& inputs) {
    EXPECT_THROW(attention(inputs.q, inputs.k, inputs.v, inputs.sequences, {}), ShapeError);
  };
  Inputs inputs = good;
  inputs.v = good.v.slice(0, 0, 4).contiguous();
  refuses(inputs);
  inputs = good;
  inputs.k = inputs.v = at::ones({5, 3, 4});
  refuses(inputs);
  inputs = good;
  inputs.q = good.q.transpose(1, 2).contiguous().transpose(1, 2);
  refuses(inputs);
  inputs = good;
  inputs.sequences.query_bounds = at::tensor({0, 2, 6}, at::kLong);
  refuses(inputs);
  inputs.sequences.query_bounds = at::tensor({0, 6, 5}, at::kLong);
  refuses(inputs);
}

// One key has all the weight, so gradients of q and k are rounding errors: only check that they are finite.
TEST(AttentionKernel, HugeScoresStayFinite) {
  for_each_target([] {
    Inputs inputs = make_inputs({70}, {70}, 1, 8, at::kFloat);
    inputs.q *= 1e4;
    const auto result = attention(inputs.q, inputs.k, inputs.v, inputs.sequences, {});
    const auto gradients = backward(inputs, result, {});
    EXPECT_LT(result.rows.abs().max().item<double>(), inputs.v.abs().max().item<double>() * 1.0001);
    for (const Tensor& gradient : {gradients.q, gradients.k, gradients.v}) {
      EXPECT_TRUE(at::isfinite(gradient).all().item<bool>());
    }
  });
}

TEST(AttentionKernel, NonFiniteValuesPropagate) {
  for_each_target([] {
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      Inputs inputs = make_inputs({20}, {20}, 1, 8, at::kFloat);
      inputs.k[3][0][2] = bad;
      const auto result = attention(inputs.q, inputs.k, inputs.v, inputs.sequences, {});
      EXPECT_FALSE(at::isfinite(result.rows.sum()).item<bool>());
    }
  });
}

// Ranks that divide the heads of a model draw the masks of their heads.
TEST_P(AttentionKernel, HeadsHaveTheMasksOfTheirNumbers) {
  const Inputs all = make_inputs({7, 1, 19}, {7, 1, 19}, 5, 8, GetParam().dtype);
  const Dropout dropout = {0.5, 77};
  const auto part = [](const Tensor& x) { return x.slice(1, 2, 5).contiguous(); };
  AttentionSequences sequences = all.sequences;
  sequences.first_head = 2;
  EXPECT_TRUE(at::equal(attention(part(all.q), part(all.k), part(all.v), sequences, dropout).rows,
                        part(attention(all.q, all.k, all.v, all.sequences, dropout).rows)));
  const auto wide = [&](const Tensor& x) { return x.to(at::kDouble); };
  EXPECT_LT(
      difference(
          attention_reference(wide(part(all.q)), wide(part(all.k)), wide(part(all.v)), sequences, dropout),
          part(attention_reference(wide(all.q), wide(all.k), wide(all.v), all.sequences, dropout))),
      1e-12);
}

}  // namespace
}  // namespace stretto::kernels
