// The proxy's pages at its admin address: /metrics, /healthz, /readyz, /readyz/all, /readyz/share and the status page.
//
//   /healthz ─▶ asks every worker ─ all have answered, or 1 s is over ─▶ 200, or 503 with the workers that have not
//
// /healthz is about this process only: with all backends down it is healthy, but not ready. Thread: the frontend's.
#pragma once

#include <memory>
#include <vector>

#include "admin/http_server.h"
#include "base/service/watchdog.h"
#include "events/event.h"
#include "proxy/report/stats_report.h"
#include "proxy/worker.h"

namespace egret::proxy {

// The end of a backend's line of /readyz that is held back; --doctor looks for it.
inline constexpr std::string_view kHeldBack = ", held back until it has been told of a change of the backends";

class AdminPages {
 public:
  AdminPages(events::EventLoop& loop, const ProxyState& stats, const std::vector<std::unique_ptr<Worker>>& workers,
             base::Watchdog& watchdog);
  ~AdminPages();

  // Listens at the address of the option `admin`.
  base::Status listen();
  // The options have been read again: another list of names by which it may be asked.
  void reload(const admin::AdminOption& option) { server_.allow_hosts(option.hosts); }

 private:
  void ask_health(admin::HttpReply reply);
  void look_for_answers();
  std::vector<size_t> silent_workers() const;
  enum class ReadyWhen : uint8_t { kAnyBackendIsUp, kShareOfBackendsIsUp, kAllBackendsAreUp };
  admin::Answer readiness(ReadyWhen when) const;

  const ProxyState& stats_;
  const std::vector<std::unique_ptr<Worker>>& workers_;
  base::Watchdog& watchdog_;
  admin::HttpServer server_;
  events::Event look_again_;             // pending while a request waits for the workers' answers
  std::vector<admin::HttpReply> asked_;  // requests of /healthz that are not answered yet
  uint64_t call_ = 0;                    // number of the Watchdog::call() that they wait for
  uint64_t call_ends_ns_ = 0;
};

}  // namespace egret::proxy
