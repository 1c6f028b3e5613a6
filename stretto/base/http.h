#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/base/error.h"

namespace stretto {

// No reply was received: the connection was refused or broken, a time limit exceeded, the certificate not
// accepted.
struct HttpError : Error {
  using Error::Error;
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  std::string body = {};
  std::vector<std::string> headers = {};  // "Name: value"
  std::string user = {}, password = {};   // basic authentication, unless `user` is empty
  std::filesystem::path upload = {};      // a file to send instead of `body`
  bool check_certificate = true;
  const std::atomic<bool>* cancelled = nullptr;  // when true, the request is aborted within about a second
  // Follows redirections, over HTTP and HTTPS; a header Authorization is not sent to another host.
  bool follow = false;
  // Takes the content of a reply with status 200 or 206, in parts of any length, instead of HttpReply::body.
  // An exception ends the request and is rethrown.
  std::function<void(int64_t status, std::string_view bytes)> receive = {};
};

struct HttpReply {
  int64_t status = 0;
  std::string body;  // at most 4 MiB
};

// Sends a request over HTTP or HTTPS with libcurl, which respects the usual variables for proxies and
// certificates. A connection that takes more than 10 s, or stalls for 30 s, is aborted. Thread-safe. Throws
// HttpError.
HttpReply send_request(const HttpRequest& request);

// Throws ConfigError where libcurl cannot be loaded. It is loaded when it is first needed, because its
// dependencies would double the time in which `stretto` starts.
void require_http();

// `text` with all but unreserved characters as %XX, for a part of a URL.
std::string url_encode(const std::string& text);

}  // namespace stretto
