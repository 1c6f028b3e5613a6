#pragma once

#include <filesystem>

// Sets up the log of a rank (log.h), once per process. These functions do not throw because of later failures
// to write.
namespace stretto::log {

// Like open_file, but nothing is written before release_file(): see HeldFile.
void open_held_file(const std::filesystem::path& path);
void release_file();

// Closes a file that was not released, without having written to it.
void discard_held_file();

// From this call on, lines reach stderr through a bounded buffer and a separate thread (StreamWriter), so
// that a reader that stops (an unread pipe, a terminal after Ctrl-S, a stopped launcher) never blocks this
// process. Log lines may then appear later than output that the program writes to stderr itself.
// `to_launcher`: stderr is read by stretto's launcher, which keeps the log and has a buffer for its own
// readers. The buffer is then larger (64 MiB), and flush() and the end of the process wait until the launcher
// has read everything.
void buffer_stderr(bool to_launcher);

}  // namespace stretto::log
