#include "stretto/nn/crf.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <torch/csrc/autograd/custom_function.h>

#include "stretto/base/error.h"

namespace stretto::nn {
namespace {

Tensor on_cpu(const Tensor& x) { return x.detach().to(at::kCPU, at::kDouble).contiguous(); }

// Sums of probabilities are exact enough between these bounds; outside them, logarithms are added instead.
constexpr double smallest_sum = 1e-200;
constexpr double largest_transition = 200;

// The algorithms on one sequence at a time, on copies of all inputs. Scores are logarithms. A sum over the
// tags of a neighbouring row is the product of a vector with the matrix of exponentiated transitions, so that
// only K exponentials are computed per row.
class Chains {
 public:
  Chains(const Tensor& emissions, const Tensor& cu_seqlens, const CrfScores& scores)
      : emissions_(on_cpu(emissions)),
        bounds_(cu_seqlens.to(at::kCPU).contiguous()),
        transitions_(on_cpu(scores.transitions)),
        start_(on_cpu(scores.start)),
        end_(on_cpu(scores.end)),
        factors_(transitions_.exp()),
        factors_to_(factors_.t().contiguous()),
        highest_(transitions_.numel() > 0 ? transitions_.max().item<double>() : 0) {
    if (emissions_.dim() != 2 || transitions_.sizes() != at::IntArrayRef({tags(), tags()}) ||
        start_.sizes() != at::IntArrayRef({tags()}) || end_.sizes() != start_.sizes() ||
        bounds_.numel() < 1) {
      throw ShapeError("crf: emissions {}, transitions {}, start {} and end {} do not match",
                       describe(emissions), describe(scores.transitions), describe(scores.start),
                       describe(scores.end));
    }
    for (int64_t b = 0; b < sequences(); ++b) {
      if (begin(b) < 0 || end(b) < begin(b) || end(b) > emissions_.size(0))
        throw ShapeError("crf: sequence {} is rows {} to {} of {}", b, begin(b), end(b), emissions_.size(0));
    }
  }

  int64_t sequences() const { return bounds_.numel() - 1; }
  int64_t tags() const { return emissions_.size(1); }
  int64_t begin(int64_t b) const { return bounds_.const_data_ptr<int64_t>()[b]; }
  int64_t end(int64_t b) const { return bounds_.const_data_ptr<int64_t>()[b + 1]; }
  double emission(int64_t row, int64_t tag) const {
    return emissions_.const_data_ptr<double>()[row * tags() + tag];
  }
  double transition(int64_t from, int64_t to) const {
    return transitions_.const_data_ptr<double>()[from * tags() + to];
  }
  // Whether exp(transitions) is far from overflow.
  bool has_factors() const { return highest_ < largest_transition; }
  double factor(int64_t from, int64_t to) const {
    return factors_.const_data_ptr<double>()[from * tags() + to];
  }
  double start(int64_t tag) const { return start_.const_data_ptr<double>()[tag]; }
  double last(int64_t tag) const { return end_.const_data_ptr<double>()[tag]; }

  Tensor new_rows() const { return at::zeros_like(emissions_); }

  // alpha[t, j]: the log-sum of all paths up to tag j in row t, including its emission. Returns log Z of
  // sequence b.
  double forward(int64_t b, double* alpha) const {
    const int64_t k = tags();
    if (begin(b) == end(b)) return 0;
    std::vector<double> terms(static_cast<size_t>(k)), sums(static_cast<size_t>(k));
    for (int64_t j = 0; j < k; ++j) alpha[begin(b) * k + j] = start(j) + emission(begin(b), j);
    for (int64_t t = begin(b) + 1; t < end(b); ++t) {
      const double* const before = alpha + (t - 1) * k;
      const double most = multiply(before, factors_, terms, sums);
      for (int64_t j = 0; j < k; ++j) {
        double sum = sums[static_cast<size_t>(j)];
        if (sum > smallest_sum) {
          sum = most + std::log(sum);
        } else {
          for (int64_t i = 0; i < k; ++i) terms[static_cast<size_t>(i)] = before[i] + transition(i, j);
          sum = log_sum(terms);
        }
        alpha[t * k + j] = sum + emission(t, j);
      }
    }
    for (int64_t j = 0; j < k; ++j) terms[static_cast<size_t>(j)] = alpha[(end(b) - 1) * k + j] + last(j);
    return log_sum(terms);
  }

  // beta[t, i]: the log-sum of all continuations of a path from tag i in row t, without its emission.
  void backward(int64_t b, double* beta) const {
    const int64_t k = tags();
    if (begin(b) == end(b)) return;
    std::vector<double> behind(static_cast<size_t>(k)), terms(behind), sums(behind);
    for (int64_t i = 0; i < k; ++i) beta[(end(b) - 1) * k + i] = last(i);
    for (int64_t t = end(b) - 2; t >= begin(b); --t) {
      for (int64_t j = 0; j < k; ++j)
        behind[static_cast<size_t>(j)] = emission(t + 1, j) + beta[(t + 1) * k + j];
      const double most = multiply(behind.data(), factors_to_, terms, sums);
      for (int64_t i = 0; i < k; ++i) {
        const double sum = sums[static_cast<size_t>(i)];
        if (sum > smallest_sum) {
          beta[t * k + i] = most + std::log(sum);
        } else {
          for (int64_t j = 0; j < k; ++j)
            terms[static_cast<size_t>(j)] = transition(i, j) + behind[static_cast<size_t>(j)];
          beta[t * k + i] = log_sum(terms);
        }
      }
    }
  }

  double score_of(int64_t b, const int64_t* path) const {
    if (begin(b) == end(b)) return 0;
    double score = start(path[begin(b)]) + last(path[end(b) - 1]);
    for (int64_t t = begin(b); t < end(b); ++t) {
      score += emission(t, path[t]);
      if (t > begin(b)) score += transition(path[t - 1], path[t]);
    }
    return score;
  }

 private:
  static double log_sum(const std::vector<double>& terms) {
    double most = terms.front();
    for (const double term : terms) most = std::max(most, term);
    if (!std::isfinite(most)) return most;
    double sum = 0;
    for (const double term : terms) sum += std::exp(term - most);
    return most + std::log(sum);
  }

  // Computes sums[j] = sum over i of exp(scores[i] - most) * matrix[i, j], and returns `most`, the highest
  // score. `terms`: scratch memory for K numbers.
  double multiply(const double* scores, const Tensor& matrix, std::vector<double>& terms,
                  std::vector<double>& sums) const {
    const auto k = static_cast<size_t>(tags());
    const double most = *std::max_element(scores, scores + k);
    std::fill(sums.begin(), sums.end(), 0.0);
    if (!std::isfinite(most) || !has_factors()) return most;
    for (size_t i = 0; i < k; ++i) terms[i] = std::exp(scores[i] - most);
    const double* row = matrix.const_data_ptr<double>();
    for (size_t i = 0; i < k; ++i, row += k)
      for (size_t j = 0; j < k; ++j) sums[j] += terms[i] * row[j];
    return most;
  }

  Tensor emissions_, bounds_, transitions_, start_, end_;
  Tensor factors_, factors_to_;  // exp(transitions), and its transpose
  double highest_;               // the largest transition
};

void require_tags(const Chains& chains, const Tensor& tags, int64_t rows) {
  if (tags.dim() != 1 || tags.numel() != rows)
    throw ShapeError("crf: tags {} and {} rows of emissions do not match", describe(tags), rows);
  for (int64_t b = 0; b < chains.sequences(); ++b) {
    for (int64_t t = chains.begin(b); t < chains.end(b); ++t) {
      const int64_t tag = tags.const_data_ptr<int64_t>()[t];
      if (tag >= 0 && tag < chains.tags()) continue;
      throw DataError("crf: row {} has the tag {}; expected 0 to {}", t, tag, chains.tags() - 1);
    }
  }
}

// Adds weight * the probabilities of the pairs of tags in rows t - 1 and t to pair [K, K]. alpha and beta are
// those of the two rows, z is log Z; `room`: scratch memory for 2 K numbers.
void add_pairs(const Chains& chains, const double* alpha, const double* beta, int64_t t, double z,
               double weight, std::vector<double>& room, double* pair) {
  const int64_t k = chains.tags();
  double *const from = room.data(), *const to = from + k;
  for (int64_t j = 0; j < k; ++j) to[j] = chains.emission(t, j) + beta[j];
  const double most_from = *std::max_element(alpha, alpha + k), most_to = *std::max_element(to, to + k);
  const double scale = std::exp(most_from + most_to - z);
  if (!chains.has_factors() || !(scale > smallest_sum && scale < 1 / smallest_sum)) {
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < k; ++j)
        pair[i * k + j] += weight * std::exp(alpha[i] + chains.transition(i, j) + to[j] - z);
    return;
  }
  for (int64_t i = 0; i < k; ++i) from[i] = weight * scale * std::exp(alpha[i] - most_from);
  for (int64_t j = 0; j < k; ++j) to[j] = std::exp(to[j] - most_to);
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < k; ++j) pair[i * k + j] += from[i] * chains.factor(i, j) * to[j];
}

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct CrfLosses : torch::autograd::Function<CrfLosses> {
  static Tensor forward(AutogradContext* context, const Tensor& emissions, const Tensor& transitions,
                        const Tensor& start, const Tensor& end, const Tensor& cu_seqlens,
                        const Tensor& given) {
    const Chains chains(emissions, cu_seqlens, {transitions, start, end});
    const Tensor tags = given.to(at::kCPU, at::kLong).contiguous();
    require_tags(chains, tags, emissions.size(0));
    const Tensor alpha = chains.new_rows(), log_z = at::zeros({chains.sequences()}, at::kDouble),
                 losses = at::zeros_like(log_z);
    for (int64_t b = 0; b < chains.sequences(); ++b) {
      log_z.data_ptr<double>()[b] = chains.forward(b, alpha.data_ptr<double>());
      losses.data_ptr<double>()[b] =
          log_z.data_ptr<double>()[b] - chains.score_of(b, tags.const_data_ptr<int64_t>());
    }
    context->save_for_backward({emissions, transitions, start, end, cu_seqlens, tags, alpha, log_z});
    const bool wide = emissions.scalar_type() == at::kDouble;
    return losses.to(emissions.device(), wide ? at::kDouble : at::kFloat);
  }

  // The gradient is the expected counts of emissions and transitions minus those of the given tags.
  static variable_list backward(AutogradContext* context, const variable_list& outputs) {
    const auto saved = context->get_saved_variables();
    const Tensor &emissions = saved[0], &tags = saved[5], &log_z = saved[7];
    const Chains chains(emissions, saved[4], {saved[1], saved[2], saved[3]});
    const int64_t k = chains.tags();
    const Tensor weights = on_cpu(outputs[0]), beta = chains.new_rows(), rows = chains.new_rows(),
                 pairs = at::zeros({k, k}, at::kDouble), first = at::zeros({k}, at::kDouble),
                 last = at::zeros({k}, at::kDouble);
    const double* const alpha = saved[6].const_data_ptr<double>();
    const int64_t* const path = tags.const_data_ptr<int64_t>();
    double *const row = rows.data_ptr<double>(), *const pair = pairs.data_ptr<double>();
    std::vector<double> room(static_cast<size_t>(2 * k));
    for (int64_t b = 0; b < chains.sequences(); ++b) {
      const int64_t begin = chains.begin(b), end = chains.end(b);
      if (begin == end) continue;
      const double weight = weights.const_data_ptr<double>()[b], z = log_z.const_data_ptr<double>()[b];
      chains.backward(b, beta.data_ptr<double>());
      const double* const behind = beta.const_data_ptr<double>();
      for (int64_t t = begin; t < end; ++t) {
        for (int64_t j = 0; j < k; ++j)
          row[t * k + j] = weight * std::exp(alpha[t * k + j] + behind[t * k + j] - z);
        row[t * k + path[t]] -= weight;
        if (t == begin) continue;
        add_pairs(chains, alpha + (t - 1) * k, behind + t * k, t, z, weight, room, pair);
        pair[path[t - 1] * k + path[t]] -= weight;
      }
      for (int64_t j = 0; j < k; ++j) {
        first.data_ptr<double>()[j] += row[begin * k + j];
        last.data_ptr<double>()[j] += row[(end - 1) * k + j];
      }
    }
    const auto like = [](const Tensor& gradient, const Tensor& of) {
      return gradient.to(of.device(), of.scalar_type());
    };
    return {like(rows, emissions),
            like(pairs, saved[1]),
            like(first, saved[2]),
            like(last, saved[3]),
            Tensor(),
            Tensor()};
  }
};

}  // namespace

Tensor crf_losses(const Tensor& emissions, const Tensor& cu_seqlens, const Tensor& tags,
                  const CrfScores& scores) {
  return CrfLosses::apply(emissions, scores.transitions, scores.start, scores.end, cu_seqlens, tags);
}

Tensor crf_best_tags(const Tensor& emissions, const Tensor& cu_seqlens, const CrfScores& scores) {
  const Chains chains(emissions, cu_seqlens, scores);
  const int64_t k = chains.tags();
  const Tensor tags = at::zeros({emissions.size(0)}, at::kLong);
  int64_t* const path = tags.data_ptr<int64_t>();
  std::vector<double> best(static_cast<size_t>(k)), next(static_cast<size_t>(k));
  std::vector<int64_t> from(static_cast<size_t>(emissions.numel()));  // the best previous tag per row and tag
  const auto better = [&](const std::vector<double>& of) {
    return static_cast<int64_t>(std::max_element(of.begin(), of.end()) - of.begin());
  };
  for (int64_t b = 0; b < chains.sequences(); ++b) {
    const int64_t begin = chains.begin(b), end = chains.end(b);
    if (begin == end) continue;
    for (int64_t j = 0; j < k; ++j)
      best[static_cast<size_t>(j)] = chains.start(j) + chains.emission(begin, j);
    for (int64_t t = begin + 1; t < end; ++t) {
      for (int64_t j = 0; j < k; ++j) {
        int64_t source = 0;
        for (int64_t i = 1; i < k; ++i) {
          if (best[static_cast<size_t>(i)] + chains.transition(i, j) >
              best[static_cast<size_t>(source)] + chains.transition(source, j))
            source = i;
        }
        from[static_cast<size_t>(t * k + j)] = source;
        next[static_cast<size_t>(j)] =
            best[static_cast<size_t>(source)] + chains.transition(source, j) + chains.emission(t, j);
      }
      std::swap(best, next);
    }
    for (int64_t j = 0; j < k; ++j) best[static_cast<size_t>(j)] += chains.last(j);
    path[end - 1] = better(best);
    for (int64_t t = end - 1; t > begin; --t) path[t - 1] = from[static_cast<size_t>(t * k + path[t])];
  }
  return tags.to(emissions.device());
}

Tensor crf_marginals(const Tensor& emissions, const Tensor& cu_seqlens, const CrfScores& scores) {
  const Chains chains(emissions, cu_seqlens, scores);
  const int64_t k = chains.tags();
  const Tensor alpha = chains.new_rows(), beta = chains.new_rows(), marginals = chains.new_rows();
  for (int64_t b = 0; b < chains.sequences(); ++b) {
    const double z = chains.forward(b, alpha.data_ptr<double>());
    chains.backward(b, beta.data_ptr<double>());
    for (int64_t at = chains.begin(b) * k; at < chains.end(b) * k; ++at)
      marginals.data_ptr<double>()[at] =
          std::exp(alpha.const_data_ptr<double>()[at] + beta.const_data_ptr<double>()[at] - z);
  }
  return marginals.to(emissions.device());
}

Crf::Crf(int64_t tags)
    : transitions(register_parameter("transitions", at::empty({tags, tags}))),
      start(register_parameter("start", at::empty({tags}))),
      end(register_parameter("end", at::empty({tags}))) {}

Tensor Crf::forward(const Tensor& emissions, const Tensor& cu_seqlens, const Tensor& tags,
                    Result result) const {
  const CrfScores scores = {transitions, start, end};
  switch (result) {
    case Result::losses:
      return crf_losses(emissions, cu_seqlens, tags, scores);
    case Result::best_tags:
      return crf_best_tags(emissions, cu_seqlens, scores);
    case Result::marginals:
      return crf_marginals(emissions, cu_seqlens, scores);
  }
  return {};
}

}  // namespace stretto::nn
