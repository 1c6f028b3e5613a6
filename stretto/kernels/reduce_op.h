#pragma once

namespace stretto {

// How values of several ranks become one.
enum class ReduceOp { sum, product, min, max };

}  // namespace stretto
