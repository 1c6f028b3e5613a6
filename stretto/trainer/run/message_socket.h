#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "stretto/base/fd.h"

namespace stretto::trainer {

// One end of a connection between two processes of a host, over which they exchange JSON values, which keep
// NaN.
class MessageSocket {
 public:
  explicit MessageSocket(Fd socket) : socket_(std::move(socket)) {}

  // Returns false if the other process has ended. REQUIRES: it reads, as large messages wait for it.
  bool send(const nlohmann::json& message);
  // The next message; nullopt if none is complete within `patience`, or the other process has ended. Throws
  // DataError for bytes that are no message.
  std::optional<nlohmann::json> receive(std::chrono::milliseconds patience);
  // Whether receive() has found that the other process has ended.
  bool ended() const { return ended_; }

 private:
  std::optional<nlohmann::json> first_message();

  Fd socket_;
  std::string received_;
  bool ended_ = false;
};

}  // namespace stretto::trainer
