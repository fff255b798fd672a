// The backend's pages at its admin address: /metrics, /healthz, /readyz and the status page.
//
//   /metrics, /healthz ─▶ inquiry: a message to every partition ─ all have reported, or 1 s is over ─▶ answers
//
// There is one inquiry at a time; requests that come meanwhile share it. At most one message to a partition is in
// flight, so messages to a hanging partition do not accumulate. Thread: the control thread's; partitions write their
// reports in between (backend/report/report.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "admin/http_server.h"
#include "backend/config.h"
#include "backend/report/metrics.h"
#include "backend/report/report.h"
#include "events/event.h"

namespace egret::backend {

class AdminPages {
 public:
  // The control thread, as the pages see it.
  class Host {
   public:
    // Asks the partition to fill in the report. Then call on_report().
    virtual void inquire(uint32_t partition, PartitionReport& report) = 0;
    virtual ControlFigures figures() const = 0;

   protected:
    ~Host() = default;
  };

  AdminPages(events::EventLoop& loop, const Config& config, Host& host);
  ~AdminPages();

  // Listens at the address of the option `admin`.
  base::Status listen();
  // The options have been read again: another list of names by which it may be asked.
  void reload(const admin::AdminOption& option) { server_.allow_hosts(option.hosts); }
  void on_report(uint32_t partition);

 private:
  enum class Topic : uint8_t { kMetrics, kHealth };
  struct Question {
    Topic topic;
    admin::HttpReply reply;
  };
  struct Partition {
    PartitionReport report;
    bool is_asked = false;  // its message is in flight: the partition owns the report
    bool has_said = false;  // it has reported in this inquiry
  };

  void ask(Topic topic, admin::HttpReply reply);
  void answer_all();
  admin::Answer metrics() const;
  admin::Answer health() const;

  const Config& config_;
  Host& host_;
  std::vector<Partition> partitions_;  // never resized, so that reports do not move
  admin::HttpServer server_;
  events::Event patience_;  // pending during an inquiry
  std::vector<Question> questions_;
};

}  // namespace egret::backend
