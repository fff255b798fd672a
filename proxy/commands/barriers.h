// Commands for every backend: flush_all, stats, stats reset, cache_memlimit, debugtime. Such a command is sent when all
// earlier ones are answered, and no later one is read until it is answered itself.
//
//   command ─ all earlier ones answered? ─▶ FanOut ─▶ every lane of every backend ─▶ merged answer
#pragma once

#include <string>

#include "memcache/translate.h"
#include "pool/fan_out.h"
#include "proxy/commands/client_context.h"

namespace egret::proxy {

class AdminCommands;

class Barriers final : private pool::FanOutOwner {
 public:
  explicit Barriers(ClientContext& client) : client_(client) {}
  ~Barriers();

  bool is_running() const { return fan_out_ != nullptr; }

  Outcome flush_all();
  // Topics that need no backend are answered at once, or by `admin`.
  Outcome stats(AdminCommands& admin);
  // An administrative verb with a number, for every partition of every backend.
  Outcome tell_all(op::AdminVerb verb, uint64_t number);

 private:
  Outcome start(const op::Op& op);
  Outcome report(std::string_view text);
  Outcome detail(AdminCommands& admin);
  Outcome cachedump(AdminCommands& admin);
  std::string report_on(const pool::FanOut& fan_out);
  void on_fan_out(const pool::FanOut& fan_out) override;
  void on_all_told(op::ResultCode failure);

  ClientContext& client_;
  pool::FanOut* fan_out_ = nullptr;                              // deletes itself at its end
  memcache::StatsTopic topic_ = memcache::StatsTopic::kGeneral;  // of the present fan-out
  uint64_t asked_ns_ = 0;                                        // when the present fan-out began
  op::AdminVerb verb_ = op::AdminVerb::kMemoryLimit;             // of the present fan-out
  size_t last_listed_ = 0;  // class of the last cachedump, if all from 1 on came in turn; else 0
};

}  // namespace egret::proxy
