#pragma once

#include <filesystem>

// What a rank's process decides once about its log (log.h). Nothing here throws because of what cannot be written later.
namespace stretto::log {

// As open_file, but nothing is written before release_file(): see HeldFile.
void open_held_file(const std::filesystem::path& path);
void release_file();

// From here on lines reach stderr through a bounded buffer and a thread of its own (StreamWriter): a reader that stops
// (an unread pipe, a terminal after Ctrl-S, a launcher that is stopped) never stops this process. Lines of
// the log then may come later than what the program itself writes to stderr. `to_launcher`: stderr is read by
// stretto's launcher, which keeps the log and has a buffer for its own readers: here the buffer is larger (64
// MiB), and flush() and the end of the process wait until the launcher has read all.
void buffer_stderr(bool to_launcher);

}  // namespace stretto::log
