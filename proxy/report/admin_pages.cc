#include "proxy/report/admin_pages.h"

#include <chrono>
#include <utility>

#include "base/text.h"
#include "page/page.h"
#include "proxy/report/metrics.h"

namespace egret::proxy {

using admin::Answer;
using admin::HttpReply;

namespace {

constexpr uint64_t kPatienceNs = 1'000'000'000;  // a thread that does not answer for so long hangs
constexpr std::chrono::milliseconds kLookAgain{5};
constexpr unsigned kUnavailable = 503;

}  // namespace

AdminPages::AdminPages(events::EventLoop& loop, const ProxyState& stats,
                       const std::vector<std::unique_ptr<Worker>>& workers, base::Watchdog& watchdog)
    : stats_(stats),
      workers_(workers),
      watchdog_(watchdog),
      server_(loop),
      look_again_(events::Event::timer<&AdminPages::look_for_answers>(loop, *this)) {
  server_.serve("/", {.body = page::status_page(),
                      .content_type = page::kContentType,
                      .content_security_policy = page::content_security_policy()});
  server_.serve("/metrics", [this](HttpReply reply) {
    reply.send({.body = metrics_text(stats_), .content_type = std::string(admin::MetricPage::kContentType)});
  });
  server_.serve("/readyz", [this](HttpReply reply) { reply.send(readiness(ReadyWhen::kAnyBackendIsUp)); });
  server_.serve("/readyz/all", [this](HttpReply reply) { reply.send(readiness(ReadyWhen::kAllBackendsAreUp)); });
  server_.serve("/readyz/share", [this](HttpReply reply) { reply.send(readiness(ReadyWhen::kShareOfBackendsIsUp)); });
  server_.serve("/healthz", [this](HttpReply reply) { ask_health(std::move(reply)); });
}

AdminPages::~AdminPages() = default;

base::Status AdminPages::listen() {
  return server_.listen(stats_.config.get()->admin);
}

// Requests that come while a call is in progress share it.
void AdminPages::ask_health(HttpReply reply) {
  asked_.push_back(std::move(reply));
  if (asked_.size() > 1) return;
  call_ = watchdog_.call();
  call_ends_ns_ = stats_.clock->now_ns() + kPatienceNs;
  for (const auto& worker : workers_) worker->wake();
  look_again_.add(kLookAgain);
}

void AdminPages::look_for_answers() {
  const std::vector<size_t> silent = silent_workers();
  if (!silent.empty() && stats_.clock->now_ns() < call_ends_ns_) {
    look_again_.add(kLookAgain);
    return;
  }
  Answer answer{.body = "ok\n"};
  if (!silent.empty()) answer = {.status = kUnavailable, .body = ""};
  for (const size_t worker : silent) answer.body += "worker " + std::to_string(worker) + " does not answer\n";
  for (HttpReply& reply : std::exchange(asked_, {})) reply.send(answer);
}

std::vector<size_t> AdminPages::silent_workers() const {
  std::vector<size_t> silent;
  for (size_t worker = 0; worker < workers_.size(); ++worker) {
    if (!watchdog_.has_answered(worker, call_)) silent.push_back(worker);
  }
  return silent;
}

// Of a backend that is not served as usual: why, and who has its keys.
std::string what_is_wrong(const pool::Membership::Entry& entry) {
  std::string text;
  if (entry.stats->health.is_ejected.get() != 0) {
    text += std::string("; ejected: ") + pool::to_string(static_cast<pool::EjectReason>(entry.stats->health.why.get()));
  }
  if (entry.stats->failover.stands_in.get() != 0) text += "; the gutter takes its keys";
  if (entry.stats->health.is_held_back.get() != 0) text += kHeldBack;
  return text;
}

// A backend is up when every worker has a session with it. For /readyz it is enough that one backend's keys are served: by
// one session with it, or by the gutter; those of the others are answered with errors. /readyz/all wants every backend
// up, /readyz/share as many as the option ready_share says.
Answer AdminPages::readiness(ReadyWhen when) const {
  const std::shared_ptr<const pool::Membership> membership = stats_.membership.get();
  const size_t workers = workers_.size();
  std::string lines;
  bool any = false;
  size_t down = 0;
  for (const pool::Membership::Entry& entry : membership->members()) {
    const size_t open = entry.stats->open_sessions();
    any |= open > 0 || entry.stats->failover.stands_in.get() != 0;
    if (open < workers) ++down;
    lines += "backend " + entry.member.to_string() + ": " + (open == workers ? "up" : "down") + ", " +
             std::to_string(open) + " of " + base::counted(workers, "worker") + " have a session" +
             what_is_wrong(entry) + "\n";
  }
  if (!any) return {.status = kUnavailable, .body = "no backend is up\n" + lines};
  const size_t count = membership->members().size();
  const uint32_t wanted = when == ReadyWhen::kAllBackendsAreUp      ? 100
                          : when == ReadyWhen::kShareOfBackendsIsUp ? stats_.config.get()->ready_share
                                                                    : 0;
  if ((count - down) * 100 < wanted * count) {
    return {.status = kUnavailable,
            .body = std::to_string(down) + " of " + base::counted(membership->members().size(), "backend") + " down\n" +
                    lines};
  }
  return {.body = "ready\n" + lines};
}

}  // namespace egret::proxy
