#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "stretto/base/error.h"

namespace stretto {

// There was no reply: the connection was refused or broken, a time limit exceeded, the certificate not accepted.
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
  const std::atomic<bool>* cancelled = nullptr;  // when true, the request is given up within about a second
};

struct HttpReply {
  int64_t status = 0;
  std::string body;  // at most 4 MiB
};

// Sends a request over HTTP or HTTPS with libcurl, which respects the usual variables for proxies and certificates. A
// connection that takes more than 10 s, or stalls for 30 s, is given up. Redirections are not followed. Thread-safe.
// Throws HttpError.
HttpReply send_request(const HttpRequest& request);

// Throws ConfigError where libcurl cannot be loaded. It is loaded when it is first needed, because its dependencies would
// double the time in which `stretto` starts.
void require_http();

// `text` with all but unreserved characters as %XX, for a part of a URL.
std::string url_encode(const std::string& text);

}  // namespace stretto
