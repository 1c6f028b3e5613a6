#include "stretto/trainer/run/message_socket.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>

#include "stretto/base/error.h"

namespace stretto::trainer {

bool MessageSocket::send(const nlohmann::json& message) {
  const auto body = nlohmann::json::to_cbor(message);
  const uint64_t size = body.size();
  std::string bytes(sizeof size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  bytes.append(body.begin(), body.end());
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t done = ::send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return false;
    sent += static_cast<size_t>(done);
  }
  return true;
}

// A message is its length, 8 bytes, and CBOR.
std::optional<nlohmann::json> MessageSocket::first_message() {
  uint64_t size = 0;
  if (received_.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, received_.data(), sizeof size);
  if (received_.size() - sizeof size < size) return std::nullopt;
  const std::string body = received_.substr(sizeof size, size);
  received_.erase(0, sizeof size + size);
  nlohmann::json message = nlohmann::json::from_cbor(body, /*strict=*/true, /*allow_exceptions=*/false);
  if (message.is_discarded()) throw DataError("a message between two processes of this run is malformed");
  return message;
}

std::optional<nlohmann::json> MessageSocket::receive(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    if (auto message = first_message()) return message;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd watched = {.fd = socket_.get(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&watched, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    std::array<char, 65536> piece;
    const ssize_t got = ::recv(socket_.get(), piece.data(), piece.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      ended_ = true;
      return std::nullopt;
    }
    received_.append(piece.data(), static_cast<size_t>(got));
  }
}

}  // namespace stretto::trainer
