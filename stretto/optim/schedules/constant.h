#pragma once

#include <memory>

#include "stretto/optim/schedule.h"

namespace stretto::optim {

// The optimizer's own learning rate throughout.
std::unique_ptr<Schedule> constant();

}  // namespace stretto::optim
