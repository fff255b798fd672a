// The operator's commands: those that change settings of this proxy, and those with a long answer: dumps, which list the
// items, and reports whose length depends on clients and keys. A long answer is written in parts, as its client reads it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "memcache/admin.h"
#include "proxy/commands/client_context.h"
#include "proxy/commands/dump.h"
#include "proxy/report/paged_report.h"

namespace egret::proxy {

class Barriers;

class AdminCommands final : private DumpOwner {
 public:
  explicit AdminCommands(ClientContext& client) : client_(client) {}
  ~AdminCommands();

  // Whether a dump or a report is running. Call go_on() when its client has read.
  bool is_running() const { return dump_ != nullptr || report_ != nullptr; }
  void go_on();

  // Call it in the command's turn: earlier commands must be answered first. `barriers`: for commands to every backend.
  Outcome act(const memcache::AdminRequest& request, Barriers& barriers);
  // Answers with this report. What was asked before has been answered.
  Outcome begin_report(std::unique_ptr<PagedReport> report);

 private:
  bool is_pipelined(const memcache::AdminRequest& request) const;
  Outcome line(std::string_view text);
  Outcome begin_dump(const memcache::AdminRequest& request);
  Outcome begin_watch(uint16_t streams);
  Outcome shut_down(const memcache::AdminRequest& request);
  std::string refresh_certificates();
  std::string cluster() const;
  void write_pages();
  void on_dump_text(std::string_view text) override;
  void on_dump_over() override;

  ClientContext& client_;
  Dump* dump_ = nullptr;  // deletes itself at its end
  std::unique_ptr<PagedReport> report_;
};

}  // namespace egret::proxy
