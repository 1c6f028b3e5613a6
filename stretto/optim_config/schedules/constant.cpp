#include "stretto/optim_config/schedules.h"

namespace stretto::optim {
namespace {

class Constant : public Schedule {
 public:
  std::string name() const override { return "Constant"; }
  StepRates rates(int64_t) const override { return {.lr = base().lr}; }
};

}  // namespace

std::unique_ptr<Schedule> constant(const ConstantOptions&) { return std::make_unique<Constant>(); }

}  // namespace stretto::optim
