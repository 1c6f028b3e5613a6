// A schedule that stretto does not have: the learning rate is halved after every `every` steps.
#include <cmath>

#include <stretto/stretto.h>

namespace {

namespace optim = stretto::optim;

struct HalvingOptions {
  int64_t every = 100;

  void fields(stretto::settings::Fields& field) {
    field("every", every, "steps between two halvings", stretto::settings::at_least(1));
  }
  bool operator==(const HalvingOptions&) const = default;
};

class Halving : public optim::Schedule {
 public:
  explicit Halving(const HalvingOptions& options) : options_(options) {}
  std::string name() const override { return "Halving"; }
  optim::StepRates rates(int64_t steps_done) const override {
    return {.lr = base().lr * std::pow(0.5, static_cast<double>(steps_done / options_.every))};
  }

 private:
  HalvingOptions options_;
};

std::unique_ptr<optim::Schedule> halving(const HalvingOptions& options) {
  return std::make_unique<Halving>(options);
}

}  // namespace

void add_halving() {
  optim::register_schedule(optim::schedule_kind("Halving", "half of lr after `every` steps", halving));
}
