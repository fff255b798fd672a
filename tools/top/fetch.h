// Requests /metrics from several admin addresses at once, by libcurl: no redirects, no proxies of the environment, time
// and size limits. One thread.
//
//   "HOST:PORT" | "http://..." | "unix:PATH" ─ parse_target ─▶ Target ─▶ Fetcher::ask ... Fetcher::wait ─▶ Answers
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace egret::top {

inline constexpr long kAnswerWithinMs = 3000;

struct Target {
  std::string shown;        // as it was given
  std::string url;          // with a path; /metrics by default
  std::string unix_path{};  // empty: TCP
};

base::Expected<Target> parse_target(const std::string& text);

struct Answer {
  size_t target = 0;  // its index in the Fetcher
  bool is_ok = false;
  std::string text;  // the answer, or why there is none
};

class Fetcher {
 public:
  explicit Fetcher(std::vector<Target> targets);
  ~Fetcher();
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  // Sends a request; does nothing while that target's answer is outstanding.
  void ask(size_t target);
  bool is_asking(size_t target) const;
  bool is_asking() const;  // whether any request is outstanding
  // Waits for at most `timeout_ms`, until an answer comes or one of `descriptors` is readable. Returns the answers.
  std::vector<Answer> wait(int timeout_ms, std::span<const int> descriptors);

 private:
  struct Request;
  struct Curl;  // keeps curl.h out of here
  std::unique_ptr<Curl> curl_;
  std::vector<std::unique_ptr<Request>> requests_;
};

}  // namespace egret::top
