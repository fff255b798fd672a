// The operator's commands: those that change settings of this proxy, and dumps, which list the items.
#pragma once

#include <string>
#include <string_view>

#include "memcache/admin.h"
#include "proxy/commands/client_context.h"
#include "proxy/commands/dump.h"

namespace egret::proxy {

class Barriers;

class AdminCommands final : private DumpOwner {
 public:
  explicit AdminCommands(ClientContext& client) : client_(client) {}
  ~AdminCommands();

  // Whether a dump is running. Call go_on() when its client has read.
  bool is_running() const { return dump_ != nullptr; }
  void go_on() { dump_->go_on(); }

  // Call it in the command's turn: earlier commands must be answered first. `barriers`: for commands to every backend.
  Outcome act(const memcache::AdminRequest& request, Barriers& barriers);

 private:
  bool is_pipelined(const memcache::AdminRequest& request) const;
  Outcome line(std::string_view text);
  Outcome begin_dump(const memcache::AdminRequest& request);
  Outcome begin_watch(uint16_t streams);
  Outcome shut_down(const memcache::AdminRequest& request);
  std::string refresh_certificates();
  void on_dump_text(std::string_view text) override;
  void on_dump_over() override;

  ClientContext& client_;
  Dump* dump_ = nullptr;  // deletes itself at its end
};

}  // namespace egret::proxy
