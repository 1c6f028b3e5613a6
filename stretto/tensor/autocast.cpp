#include "stretto/tensor/autocast.h"

#include <ATen/autocast_mode.h>

namespace stretto {

Autocast::Autocast(at::DeviceType device, at::ScalarType dtype)
    : device_(device),
      was_enabled_(at::autocast::is_autocast_enabled(device)),
      old_dtype_(at::autocast::get_autocast_dtype(device)) {
  at::autocast::increment_nesting();
  at::autocast::set_autocast_enabled(device, true);
  at::autocast::set_autocast_dtype(device, dtype);
}

Autocast::~Autocast() {
  // The cache of cast weights has the lifetime of the outermost guard.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, old_dtype_);
}

void forget_casts() { at::autocast::clear_cache(); }

}  // namespace stretto
