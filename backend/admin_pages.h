// The backend's pages at its admin address: /metrics, /healthz, /readyz and the page to look at.
//
//   /metrics, /healthz ─▶ inquiry: a message to every partition ─ all have reported, or a second is over ─▶ answers
//
// There is one inquiry at a time: whoever asks meanwhile shares it. A partition has one message under way at most, so
// one that stands collects none. Thread: the control thread's; partitions write their reports in between
// (backend/report.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "admin/http_server.h"
#include "backend/config.h"
#include "backend/metrics.h"
#include "backend/report.h"
#include "events/event.h"

namespace egret::backend {

class AdminPages {
 public:
  // The control thread, as the pages see it.
  class Host {
   public:
    // Has the partition fill in the report; then on_report() is to be called.
    virtual void inquire(uint32_t partition, PartitionReport& report) = 0;
    virtual ControlFigures figures() const = 0;

   protected:
    ~Host() = default;
  };

  AdminPages(events::EventLoop& loop, const Config& config, Host& host);
  ~AdminPages();

  // Where the option `admin` says.
  base::Status listen();
  void on_report(uint32_t partition);

 private:
  enum class Topic : uint8_t { kMetrics, kHealth };
  struct Question {
    Topic topic;
    admin::HttpReply reply;
  };
  struct Partition {
    PartitionReport report;
    bool is_asked = false;  // its message is under way: the report is the partition's
    bool has_said = false;  // in this inquiry
  };

  void ask(Topic topic, admin::HttpReply reply);
  void answer_all();
  admin::Answer metrics() const;
  admin::Answer health() const;

  const Config& config_;
  Host& host_;
  std::vector<Partition> partitions_;  // they stay where they are
  admin::HttpServer server_;
  events::Event patience_;  // pending while an inquiry is under way
  std::vector<Question> questions_;
};

}  // namespace egret::backend
