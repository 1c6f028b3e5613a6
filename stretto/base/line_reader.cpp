#include "stretto/base/line_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "stretto/base/error.h"

namespace stretto {

LineReader::LineReader(const std::filesystem::path& path)
    : name_(path == "-" ? "standard input" : path.string()) {
  if (path == "-") return;
  file_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_) throw IoError("{}: cannot open: {}", name_, std::strerror(errno));
}

// Appends the next part of the input to the buffer; false at its end.
bool LineReader::read_more() {
  constexpr size_t part = 1 << 18;
  const size_t before = buffer_.size();
  buffer_.resize(before + part);
  ssize_t got;
  do {
    got = ::read(file_ ? file_.get() : STDIN_FILENO, buffer_.data() + before, part);
  } while (got < 0 && errno == EINTR);
  if (got < 0) throw IoError("{}: cannot read: {}", name_, std::strerror(errno));
  buffer_.resize(before + static_cast<size_t>(got));
  ended_ = got == 0;
  return !ended_;
}

std::span<const std::string_view> LineReader::next_lines() {
  constexpr size_t most_bytes = size_t{16} << 20;
  number_ += std::ssize(lines_);
  lines_.clear();
  buffer_.erase(0, used_);
  used_ = 0;
  for (size_t searched = buffer_.size(); lines_.empty() && !ended_; searched = buffer_.size()) {
    if (buffer_.size() > most_bytes) {
      throw DataError("{}:{}: a line of more than {} MiB; expected one text per line", name_, number_,
                      most_bytes >> 20);
    }
    const bool more = read_more();
    for (size_t end; (end = buffer_.find('\n', std::max(used_, searched))) != std::string::npos;
         used_ = end + 1) {
      lines_.push_back(std::string_view(buffer_).substr(used_, end - used_));
    }
    if (!more && used_ < buffer_.size()) {
      lines_.push_back(std::string_view(buffer_).substr(used_));
      used_ = buffer_.size();
    }
  }
  return lines_;
}

std::string LineReader::rest(size_t most_bytes) {
  while (!ended_ && read_more()) {
    if (buffer_.size() > most_bytes)
      throw DataError("{}: more than {} MiB; expected at most that", name_, most_bytes >> 20);
  }
  return buffer_.substr(used_);
}

}  // namespace stretto
