#include "stretto/base/process.h"

#include <cerrno>
#include <csignal>
#include <initializer_list>

#include <fcntl.h>
#include <unistd.h>

namespace stretto {

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "this host";
  return name;
}

void fill_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    const int mode = fd == STDIN_FILENO ? O_WRONLY : fd == STDOUT_FILENO ? O_RDONLY : O_RDWR;
    ::open("/dev/null", mode);  // returns the lowest free number, which is `fd`
  }
}

void ignore_write_signals() {
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, nullptr);
  ::sigaction(SIGXFSZ, &ignore, nullptr);
}

void block_save_signal() {
  sigset_t save;
  ::sigemptyset(&save);
  ::sigaddset(&save, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &save, nullptr);
}

}  // namespace stretto
