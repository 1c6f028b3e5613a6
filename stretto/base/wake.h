#pragma once

#include <cerrno>
#include <cstring>

#include <sys/eventfd.h>

#include "stretto/base/error.h"
#include "stretto/base/fd.h"

namespace stretto {

// Wakes a poll(2) in another thread: fd() is readable from wake() until drain(), also if wake() came first.
// Thread-safe.
class Wake {
 public:
  Wake() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!fd_) throw IoError("cannot make an event descriptor: {}", std::strerror(errno));
  }

  int fd() const { return fd_.get(); }
  void wake() const { ::eventfd_write(fd_.get(), 1); }
  void drain() const {
    eventfd_t ignored = 0;
    ::eventfd_read(fd_.get(), &ignored);
  }

 private:
  Fd fd_;
};

}  // namespace stretto
