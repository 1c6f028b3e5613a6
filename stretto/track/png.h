#pragma once

#include <string>

#include "stretto/track/tracker.h"

namespace stretto {

// A PNG file (ISO/IEC 15948) of an image of at least 1 x 1, not compressed: for small pictures. REQUIRES: width x height
// x 3 bytes of pixels.
std::string encode_png(const Image& image);

}  // namespace stretto
