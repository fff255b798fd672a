#include "top/fetch.h"

#include <algorithm>
#include <charconv>

#include <curl/curl.h>

#include "base/check.h"
#include "base/text.h"
#include "top/exposition.h"

namespace egret::top {

namespace {

bool is_port(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port != 0;
}

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c < 127; });
}

// The error message: curl's error, or an HTTP status other than 200.
std::string complaint(CURLcode code, long status) {
  if (code == CURLE_OPERATION_TIMEDOUT) return "no answer within 3s";
  if (code == CURLE_WRITE_ERROR) return "answers with more than 32MiB";
  if (code != CURLE_OK) return curl_easy_strerror(code);
  return "answers with HTTP status " + std::to_string(status);
}

}  // namespace

base::Expected<Target> parse_target(const std::string& text) {
  const auto wrong = [&] {
    return base::Status::error(base::quoted(text) + ": expected HOST:PORT, http://HOST:PORT or unix:PATH");
  };
  if (text.starts_with("unix:")) {
    if (text.size() == 5 || text.size() > 5 + 107) return wrong();
    return Target{text, "http://localhost/metrics", text.substr(5)};
  }
  if (!is_plain(text)) return wrong();
  const bool has_scheme = text.starts_with("http://") || text.starts_with("https://");
  if (!has_scheme) {
    const size_t colon = text.rfind(':');
    if (text.find_first_of("/?#@") != std::string::npos || colon == std::string::npos || colon == 0) return wrong();
    if (!is_port(std::string_view(text).substr(colon + 1))) return wrong();
    return Target{text, "http://" + text + "/metrics"};
  }
  const size_t host = text.find("//") + 2;
  const size_t path = text.find('/', host);
  if (host == text.size() || path == host) return wrong();
  if (path == std::string::npos) return Target{text, text + "/metrics"};
  return Target{text, path + 1 == text.size() ? text + "metrics" : text};
}

struct Fetcher::Curl {
  Curl() {
    EGRET_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
    multi = curl_multi_init();
    EGRET_CHECK(multi != nullptr);
  }
  ~Curl() {
    curl_multi_cleanup(multi);
    curl_global_cleanup();
  }
  Curl(const Curl&) = delete;
  Curl& operator=(const Curl&) = delete;
  CURLM* multi = nullptr;
};

struct Fetcher::Request {
  explicit Request(Target given) : target(std::move(given)), easy(curl_easy_init()) {
    EGRET_CHECK(easy != nullptr);
    curl_easy_setopt(easy, CURLOPT_URL, target.url.c_str());
    if (!target.unix_path.empty()) curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, target.unix_path.c_str());
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, kAnswerWithinMs);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "egret-top");
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Request::receive);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
  }
  ~Request() { curl_easy_cleanup(easy); }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  static size_t receive(char* data, size_t size, size_t count, void* self) {
    std::string& text = static_cast<Request*>(self)->text;
    if (text.size() + size * count > kMaxScrapeBytes) return 0;  // ends the transfer
    text.append(data, size * count);
    return size * count;
  }

  Target target;
  CURL* easy;
  bool is_out = false;
  std::string text;
};

Fetcher::Fetcher(std::vector<Target> targets) : curl_(std::make_unique<Curl>()) {
  for (Target& target : targets) requests_.push_back(std::make_unique<Request>(std::move(target)));
}

Fetcher::~Fetcher() {
  for (const auto& request : requests_) {
    if (request->is_out) curl_multi_remove_handle(curl_->multi, request->easy);
  }
  requests_.clear();
}

void Fetcher::ask(size_t target) {
  Request& request = *requests_[target];
  if (request.is_out) return;
  request.text.clear();
  request.is_out = true;
  curl_multi_add_handle(curl_->multi, request.easy);
}

bool Fetcher::is_asking(size_t target) const {
  return requests_[target]->is_out;
}

bool Fetcher::is_asking() const {
  return std::ranges::any_of(requests_, [](const auto& request) { return request->is_out; });
}

std::vector<Answer> Fetcher::wait(int timeout_ms, std::span<const int> descriptors) {
  std::vector<curl_waitfd> extra;
  for (const int descriptor : descriptors) extra.push_back({descriptor, CURL_WAIT_POLLIN, 0});
  int running = 0;
  curl_multi_perform(curl_->multi, &running);
  std::vector<Answer> answers;
  int left = 0;
  const CURLMsg* message = curl_multi_info_read(curl_->multi, &left);
  if (message == nullptr) {
    curl_multi_poll(curl_->multi, extra.data(), static_cast<unsigned>(extra.size()), timeout_ms, nullptr);
    curl_multi_perform(curl_->multi, &running);
    message = curl_multi_info_read(curl_->multi, &left);
  }
  for (; message != nullptr; message = curl_multi_info_read(curl_->multi, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const auto found = std::ranges::find_if(requests_, [&](const auto& r) { return r->easy == message->easy_handle; });
    Request& request = **found;
    const CURLcode code = message->data.result;
    long status = 0;
    curl_easy_getinfo(request.easy, CURLINFO_RESPONSE_CODE, &status);
    curl_multi_remove_handle(curl_->multi, request.easy);  // invalidates the message
    request.is_out = false;
    const bool is_ok = code == CURLE_OK && status == 200;
    answers.push_back({static_cast<size_t>(found - requests_.begin()), is_ok,
                       is_ok ? std::move(request.text) : complaint(code, status)});
  }
  return answers;
}

}  // namespace egret::top
