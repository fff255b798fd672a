// The proxy's pages at its admin address: /metrics, /healthz, /readyz, /readyz/all and the page to look at.
//
//   /healthz ─▶ every worker is called ─ all have answered, or a second is over ─▶ 200, or 503 and who has not
//
// Health is of this process: one whose backends are down is healthy, and not ready. Thread: the frontend's.
#pragma once

#include <memory>
#include <vector>

#include "admin/http_server.h"
#include "base/watchdog.h"
#include "events/event.h"
#include "proxy/report/stats_report.h"
#include "proxy/worker.h"

namespace egret::proxy {

class AdminPages {
 public:
  AdminPages(events::EventLoop& loop, const ProxyState& stats, const std::vector<std::unique_ptr<Worker>>& workers,
             base::Watchdog& watchdog);
  ~AdminPages();

  // Where the option `admin` says.
  base::Status listen();

 private:
  void ask_health(admin::HttpReply reply);
  void look_for_answers();
  std::vector<size_t> silent_workers() const;
  enum class ReadyWhen : uint8_t { kAnyBackendIsUp, kAllBackendsAreUp };
  admin::Answer readiness(ReadyWhen when) const;

  const ProxyState& stats_;
  const std::vector<std::unique_ptr<Worker>>& workers_;
  base::Watchdog& watchdog_;
  admin::HttpServer server_;
  events::Event look_again_;             // pending while somebody waits for the workers' answers
  std::vector<admin::HttpReply> asked_;  // for /healthz, and not answered yet
  uint64_t call_ = 0;                    // of the watchdog
  uint64_t call_ends_ns_ = 0;
};

}  // namespace egret::proxy
