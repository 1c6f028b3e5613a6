#pragma once

#include <memory>

namespace stretto {

struct StoreHandle;

// A store in this process's memory, for ranks that are threads and for a rank alone.
std::shared_ptr<StoreHandle> memory_store();

}  // namespace stretto
