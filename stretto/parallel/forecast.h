#pragma once

#include "stretto/optim/optimizer.h"
#include "stretto/parallel/parameters.h"
#include "stretto/strategy/memory.h"

namespace stretto::parallel {

// REQUIRES: `optimizer` is not bound. All rows of tables are assumed to be reached.
ModelSizes sizes_of(const ModuleTensors& tensors, Precision precision, optim::Optimizer& optimizer);

}  // namespace stretto::parallel
