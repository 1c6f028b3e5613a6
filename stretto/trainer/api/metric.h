#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "stretto/tensor/tensor.h"

namespace stretto {

class Mesh;

using Metrics = std::map<std::string, double>;

// A metric of an evaluation: each rank updates a state with its samples, and the values are computed from the
// combined state of all ranks. Module::metric() registers it; validation_step or test_step updates it. Each
// evaluation begins with an empty state and adds every sample of the dataset once, so the values do not
// depend on the number of ranks (except for the rounding of sums of fractions). Updates outside an
// evaluation, for instance by training_step, are ignored.
class Metric {
 public:
  virtual ~Metric() = default;

  // The values, by the names under which they are logged and monitored. Called on rank 0 after the
  // evaluation. Throws Error if the state has no samples.
  virtual Metrics compute() const = 0;

  // The state: this rank's during an evaluation, the combined state of all ranks afterwards, on every rank.
  // Its shape is that of the sum, or [N, shape of a row].
  const Tensor& state() const { return state_; }

 protected:
  enum class Kind {
    sum,  // one tensor, the sum of the updates
    rows  // all updates, in no particular order over the ranks
  };
  // `shape`: the shape of the sum, or of one row. The state is float64 on the CPU.
  Metric(Kind kind, std::vector<int64_t> shape) : kind_(kind), shape_(std::move(shape)) { clear(); }

  // `values`: a tensor of `shape`, or [N, shape] with any N, of any type and device. Throws ShapeError for
  // others.
  void add(const Tensor& values);
  bool counts() const { return counts_; }

 private:
  friend class EvaluatedMetrics;
  void clear();
  std::string bytes() const;
  void add_bytes(const std::string& bytes);

  Kind kind_;
  std::vector<int64_t> shape_;
  Tensor state_;
  std::vector<Tensor> parts_;  // rows not yet joined
  bool counts_ = false;
};

// During its lifetime, updates of these metrics count.
class EvaluatedMetrics {
 public:
  explicit EvaluatedMetrics(const std::vector<std::shared_ptr<Metric>>& metrics);
  ~EvaluatedMetrics() { count(false); }
  EvaluatedMetrics(const EvaluatedMetrics&) = delete;
  EvaluatedMetrics& operator=(const EvaluatedMetrics&) = delete;

  // Sets whether updates count: those of a batch that an idle rank runs for a collective forward do not.
  void count(bool counts);

  // Gives every rank the state of all ranks of Axes::data. Collective.
  void collect(const Mesh& mesh);

  // All values. Throws ConfigError if two metrics, or a metric and `logged`, have the same name.
  void add_values(Metrics& logged) const;

 private:
  const std::vector<std::shared_ptr<Metric>>& metrics_;
};

}  // namespace stretto
