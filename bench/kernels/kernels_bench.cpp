#include <algorithm>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>

#include <fmt/format.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/ops/_fused_adamw.h>

#include "stretto/kernels/activation.h"
#include "stretto/kernels/adamw.h"
#include "stretto/kernels/attention.h"
#include "stretto/kernels/matmul/matmul.h"
#include "stretto/kernels/norm.h"
#include "stretto/kernels/sum_of_squares.h"

// Each kernel and the ATen operators it replaces, forward and backward, alternately on one thread: the median
// of each in milliseconds of CPU time, and their ratio.
namespace stretto {
namespace {

// CPU time of this thread, which other programs disturb less.
double now() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

double milliseconds(const std::function<void()>& work) {
  const double start = now();
  work();
  return now() - start;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string wanted;  // the beginning of names of what is measured

void report(const std::string& name, const std::function<void()>& ours, const std::function<void()>& theirs) {
  if (!name.starts_with(wanted)) return;
  ours(), theirs();
  std::vector<double> own, other;
  for (int turn = 0; turn < 15; ++turn) {
    own.push_back(milliseconds(ours));
    other.push_back(milliseconds(theirs));
  }
  fmt::print("{:58} {:9.3f} ms   ATen {:9.3f} ms   ratio {:6.2f}\n", name, median(own), median(other),
             median(other) / median(own));
  std::fflush(stdout);
}

Tensor leaf(const Tensor& x) { return x.detach().requires_grad_(); }

struct Heads {
  int64_t count, width;
  bool causal;
};

void attention(const char* name, const std::vector<int64_t>& lengths, const Heads& heads,
               at::ScalarType dtype, double p) {
  std::vector<int64_t> bounds = {0};
  for (const int64_t length : lengths) bounds.push_back(bounds.back() + length);
  kernels::AttentionSequences sequences = {at::tensor(bounds), at::tensor(bounds),
                                           at::arange(std::ssize(lengths)),
                                           at::zeros({std::ssize(lengths)}, at::kLong)};
  sequences.causal = heads.causal;
  const auto random = [&] { return at::randn({bounds.back(), heads.count, heads.width}).to(dtype); };
  const Tensor q = random(), k = random(), v = random(), grad = random();
  const kernels::Dropout dropout = {p, 1};
  report(
      fmt::format("attention, {}, {}, dropout {}", name, toString(dtype), p),
      [&] {
        const auto result = kernels::attention(q, k, v, sequences, dropout);
        kernels::attention_backward(grad, result, q, k, v, sequences, dropout,
                                    {at::empty_like(q), at::empty_like(k), at::empty_like(v)});
      },
      [&] { kernels::attention_reference(leaf(q), leaf(k), leaf(v), sequences, dropout).backward(grad); });
}

void norm(int64_t rows, int64_t width, at::ScalarType dtype) {
  const auto random = [&](at::IntArrayRef sizes) { return at::randn(sizes).to(dtype); };
  const Tensor x = random({rows, width}), grad = random({rows, width});
  kernels::Norm norm;
  norm.bias = random({width}), norm.residual = random({rows, width});
  norm.weight = random({width}), norm.offset = random({width});
  norm.eps = 1e-12;
  norm.samples = norm.places = at::arange(rows);
  norm.before = {0.1, 1};
  const kernels::NormSums sums = {at::zeros({width}), at::zeros({width}), at::zeros({width})};
  report(
      fmt::format("bias + dropout + residual + LayerNorm, {} x {}, {}", rows, width, toString(dtype)),
      [&] { kernels::norm_rows_backward(grad, kernels::norm_rows(x.clone(), norm), norm, sums); },
      [&] {
        kernels::Norm other = norm;
        for (Tensor* part : {&other.bias, &other.residual, &other.weight, &other.offset}) *part = leaf(*part);
        kernels::norm_rows_reference(leaf(x), other).backward(grad);
      });
}

void activation(int64_t rows, int64_t width, at::ScalarType dtype) {
  const Tensor x = at::randn({rows, width}).to(dtype), bias = at::randn({width}).to(dtype);
  const Tensor grad = at::randn({rows, width}).to(dtype), sum = at::zeros({width});
  report(
      fmt::format("bias + GELU, {} x {}, {}", rows, width, toString(dtype)),
      [&] {
        kernels::activate(kernels::Activation::gelu, x, bias);
        kernels::activate_backward(kernels::Activation::gelu, grad.clone(), x.clone(), bias, {}, sum);
      },
      [&] { kernels::activate_reference(kernels::Activation::gelu, leaf(x), leaf(bias)).backward(grad); });
}

void dropout(int64_t rows, int64_t width) {
  const kernels::DropoutRows keys = {at::arange(rows), at::zeros({rows}, at::kLong), 1};
  const Tensor x = at::randn({rows, width});
  report(
      fmt::format("dropout mask, {} x {}", rows, width),
      [&] { kernels::dropout_mask(keys, width, 0.1, 1, at::kFloat); },
      [&] { at::empty_like(x).bernoulli_(0.9); });
}

// The pass over all gradients that clipping and the checks before a step need.
void sum_of_squares(int64_t n) {
  const Tensor x = at::randn({n});
  report(
      fmt::format("sum of squares, {:.1f} M gradients", static_cast<double>(n) / 1e6),
      [&] { kernels::sum_of_squares(x); }, [&] { at::linalg_vector_norm(x).item<double>(); });
}

void adamw(int64_t n) {
  Tensor p = at::randn({n}), g = at::randn({n}), m = at::zeros({n}), v = at::zeros({n});
  std::vector<Tensor> steps = {at::ones({})};
  report(
      fmt::format("AdamW with scaling and zeroing, {:.1f} M parameters", static_cast<double>(n) / 1e6),
      [&] {
        kernels::adamw({p, g, {}}, m, v, {1e-3, 0.9, 0.999, 1e-8, 0.01, 0.5, 1});
      },
      [&] {
        g.mul_(0.5);
        at::_fused_adamw_({p}, {g}, {m}, {v}, {}, steps, 1e-3, 0.9, 0.999, 0.01, 1e-8, false, false);
        g.zero_();
      });
  // Moves as many bytes as AdamW: reads and writes four arrays.
  report(
      "  beside copying as many bytes",
      [&] {
        kernels::adamw({p, g, {}}, m, v, {1e-3, 0.9, 0.999, 1e-8, 0.01, 0.5, 1});
      },
      [&] {
        std::memcpy(p.data_ptr(), g.data_ptr(), p.nbytes());
        std::memcpy(m.data_ptr(), v.data_ptr(), p.nbytes());
        std::memcpy(g.data_ptr(), p.data_ptr(), p.nbytes());
        std::memcpy(v.data_ptr(), m.data_ptr(), p.nbytes());
      });
}

// Weights [out, in], or [in, out] if transposed, of many layers, compared with reading them once.
void few_rows(int64_t rows, int64_t in, int64_t out, bool transposed, at::ScalarType dtype) {
  std::vector<Tensor> weights;
  for (int64_t bytes = 0; bytes < (int64_t{1} << 28); bytes += static_cast<int64_t>(weights.back().nbytes()))
    weights.push_back(at::randn(transposed ? at::IntArrayRef{in, out} : at::IntArrayRef{out, in}).to(dtype));
  const Tensor x = at::randn({rows, in}).to(dtype), y = at::empty({rows, out}, dtype);
  report(
      fmt::format("{} rows times weights [{}, {}]{}, {}", rows, out, in, transposed ? " transposed" : "",
                  toString(dtype)),
      [&] {
        for (const Tensor& weight : weights)
          kernels::multiply_few_rows(y, x, transposed ? weight : weight.t(), /*accumulate=*/false);
      },
      [&] {
        for (const Tensor& weight : weights) weight.view(at::kFloat).sum();
      });
}

void run() {
  at::set_num_threads(1);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const int64_t rows : {1, 4, 8}) {
      few_rows(rows, 768, 3072, true, dtype);
      few_rows(rows, 3072, 768, true, dtype);
      few_rows(rows, 768, 50257, false, dtype);
    }
  }
  std::vector<int64_t> sentences;
  for (int64_t i = 0; i < 64; ++i) sentences.push_back(5 + i % 20);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const Heads heads = {12, 32, false};
    attention("64 sequences of 5 to 24", sentences, heads, dtype, 0.1);
    attention("4 sequences of 512", {512, 512, 512, 512}, heads, dtype, 0.1);
    attention("4 sequences of 512", {512, 512, 512, 512}, heads, dtype, 0);
    attention("8 causal sequences of 256", std::vector<int64_t>(8, 256), {6, 64, true}, dtype, 0);
    norm(860, 384, dtype);
    norm(4096, 768, dtype);
    activation(860, 1536, dtype);
    activation(4096, 3072, dtype);
  }
  dropout(860, 384);
  sum_of_squares(22'713'216);
  adamw(22'713'986);
}

}  // namespace
}  // namespace stretto

// kernels_bench [beginning of names, such as "norm"]
int main(int count, char** arguments) {
  if (count > 1) stretto::wanted = arguments[1];
  stretto::run();
}
