#include "stretto/base/http.h"

#include <exception>
#include <fstream>
#include <memory>

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <dlfcn.h>

namespace stretto {
namespace {

// The functions of libcurl.so.4 that are used.
struct Curl {
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_setopt) setopt;
  decltype(&::curl_easy_perform) perform;
  decltype(&::curl_easy_getinfo) getinfo;
  decltype(&::curl_easy_strerror) strerror;
  decltype(&::curl_easy_cleanup) cleanup;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;
};

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) throw ConfigError("libcurl.so.4 has no {}; install libcurl 7.58 or later", name);
}

Curl load_curl() {
  void* library = ::dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw ConfigError(
        "connections to servers need libcurl, which cannot be loaded: {}; install it (Debian, Ubuntu: apt-get install libcurl4)",
        ::dlerror());
  // Earlier versions send a header Authorization to any host that a server redirects to.
  decltype(&::curl_version_info) version_info = nullptr;
  find(library, "curl_version_info", version_info);
  if (const auto* found = version_info(CURLVERSION_NOW); found->version_num < 0x073A00)
    throw ConfigError("libcurl.so.4 is version {}; install libcurl 7.58 or later", found->version);
  Curl curl{};
  find(library, "curl_global_init", curl.global_init);
  find(library, "curl_easy_init", curl.easy_init);
  find(library, "curl_easy_setopt", curl.setopt);
  find(library, "curl_easy_perform", curl.perform);
  find(library, "curl_easy_getinfo", curl.getinfo);
  find(library, "curl_easy_strerror", curl.strerror);
  find(library, "curl_easy_cleanup", curl.cleanup);
  find(library, "curl_slist_append", curl.slist_append);
  find(library, "curl_slist_free_all", curl.slist_free_all);
  curl.global_init(CURL_GLOBAL_DEFAULT);
  return curl;
}

const Curl& curl() {
  static const Curl loaded = load_curl();
  return loaded;
}

// Receives the content of a reply.
struct Receiver {
  CURL* easy;
  const HttpRequest& request;
  std::string body = {};
  std::exception_ptr thrown = {};
};

size_t receive(char* bytes, size_t size, size_t count, void* receiver) {
  constexpr size_t limit = size_t{4} << 20;
  auto& [easy, request, body, thrown] = *static_cast<Receiver*>(receiver);
  const std::string_view content(bytes, size * count);
  long status = 0;
  curl().getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  if (request.receive && (status == 200 || status == 206)) {
    try {
      request.receive(status, content);
    } catch (...) {
      thrown = std::current_exception();
      return 0;  // libcurl ends the transfer
    }
    return content.size();
  }
  if (body.size() + content.size() > limit) return 0;
  body.append(content);
  return content.size();
}

size_t provide(char* bytes, size_t size, size_t count, void* file) {
  auto& stream = *static_cast<std::ifstream*>(file);
  stream.read(bytes, static_cast<std::streamsize>(size * count));
  return static_cast<size_t>(stream.gcount());
}

int is_cancelled(void* flag, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::atomic<bool>*>(flag)->load() ? 1 : 0;
}

}  // namespace

void require_http() { curl(); }

HttpReply send_request(const HttpRequest& request) {
  const Curl& lib = curl();
  const std::unique_ptr<CURL, decltype(lib.cleanup)> handle(lib.easy_init(), lib.cleanup);
  if (!handle) throw HttpError("{}: libcurl cannot be initialised", request.url);
  CURL* const easy = handle.get();
  HttpReply reply;
  Receiver receiver{easy, request};
  lib.setopt(easy, CURLOPT_URL, request.url.c_str());
  lib.setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  lib.setopt(easy, CURLOPT_NOSIGNAL, 1L);
  lib.setopt(easy, CURLOPT_CONNECTTIMEOUT, 10L);
  lib.setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
  lib.setopt(easy, CURLOPT_LOW_SPEED_TIME, 30L);
  lib.setopt(easy, CURLOPT_SSL_VERIFYPEER, request.check_certificate ? 1L : 0L);
  lib.setopt(easy, CURLOPT_SSL_VERIFYHOST, request.check_certificate ? 2L : 0L);
  lib.setopt(easy, CURLOPT_WRITEFUNCTION, &receive);
  lib.setopt(easy, CURLOPT_WRITEDATA, &receiver);
  if (!request.user.empty()) {
    lib.setopt(easy, CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
    lib.setopt(easy, CURLOPT_USERNAME, request.user.c_str());
    lib.setopt(easy, CURLOPT_PASSWORD, request.password.c_str());
  }
  std::ifstream file;
  if (!request.upload.empty()) {
    file.open(request.upload, std::ios::binary);
    if (!file) throw IoError("{}: cannot be read", request.upload.string());
    lib.setopt(easy, CURLOPT_UPLOAD, 1L);
    lib.setopt(easy, CURLOPT_READFUNCTION, &provide);
    lib.setopt(easy, CURLOPT_READDATA, &file);
    lib.setopt(easy, CURLOPT_INFILESIZE_LARGE,
               static_cast<curl_off_t>(std::filesystem::file_size(request.upload)));
  } else if (request.method != "GET") {
    lib.setopt(easy, CURLOPT_POSTFIELDS, request.body.c_str());
    lib.setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
  if (request.follow) {
    lib.setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    lib.setopt(easy, CURLOPT_MAXREDIRS, 10L);
    lib.setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");  // before libcurl 7.85 all but file and scp
  }
  if (request.cancelled != nullptr) {
    lib.setopt(easy, CURLOPT_NOPROGRESS, 0L);
    lib.setopt(easy, CURLOPT_XFERINFOFUNCTION, &is_cancelled);
    lib.setopt(easy, CURLOPT_XFERINFODATA, const_cast<std::atomic<bool>*>(request.cancelled));
  }
  curl_slist* list = lib.slist_append(nullptr, "Expect:");  // no extra round trip before a body
  for (const std::string& header : request.headers) list = lib.slist_append(list, header.c_str());
  const std::unique_ptr<curl_slist, decltype(lib.slist_free_all)> headers(list, lib.slist_free_all);
  lib.setopt(easy, CURLOPT_HTTPHEADER, list);
  const CURLcode code = lib.perform(easy);
  if (receiver.thrown) std::rethrow_exception(receiver.thrown);
  if (code != CURLE_OK) throw HttpError("{}: {}", request.url, lib.strerror(code));
  long status = 0;
  lib.getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  reply.status = status;
  reply.body = std::move(receiver.body);
  return reply;
}

std::string url_encode(const std::string& text) {
  constexpr std::string_view unreserved =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~";
  std::string encoded;
  for (const char letter : text) {
    if (unreserved.find(letter) != std::string_view::npos) {
      encoded += letter;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<uint8_t>(letter));
    }
  }
  return encoded;
}

}  // namespace stretto
