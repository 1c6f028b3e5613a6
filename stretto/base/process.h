#pragma once

#include <string>

namespace stretto {

// The name of this host; "this host" if it has none.
std::string host_name();

// Opens /dev/null for each closed descriptor from 0 to 2. Otherwise the next opened file would get that
// number, and output would be written to it. Reading from standard input and writing to standard output still
// fail with EBADF, so that a program whose input or output is lost reports it. Call first in main().
void fill_standard_descriptors();

// Ignores SIGPIPE and SIGXFSZ: writes to a pipe without a reader, or beyond the file size limit (ulimit -f),
// fail with EPIPE or EFBIG instead of ending the process. Used by processes that hold the state of a run.
void ignore_write_signals();

// Blocks SIGUSR1, which requests a save, until a handler is installed (trainer/run/requests.h); otherwise it
// would end a process that has not installed one yet. Inherited through exec and by child processes.
// REQUIRES: no other thread runs yet.
void block_save_signal();

}  // namespace stretto
