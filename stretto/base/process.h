#pragma once

namespace stretto {

// Opens /dev/null on those of the descriptors 0 to 2 that are closed. Without it the next file that is opened gets that
// number, and what is printed lands in it. Call first in main().
void fill_standard_descriptors();

// From here on a write to a pipe without a reader, or beyond the limit on a file's size (ulimit -f), fails with EPIPE
// or EFBIG instead of ending the process by SIGPIPE or SIGXFSZ. For processes that hold the state of a run.
void ignore_write_signals();

// From here on SIGUSR1, which asks a run to save, waits until somebody handles it (trainer/requests.h), instead of
// ending a process that has not come as far. Programs that this process becomes, or starts, inherit that. REQUIRES: no
// other thread runs yet.
void hold_save_requests();

}  // namespace stretto
