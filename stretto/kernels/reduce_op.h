#pragma once

namespace stretto {

// The operator of a reduction.
enum class ReduceOp { sum, product, min, max };

}  // namespace stretto
