// Commands that concern every backend: flush_all, stats, stats reset, cache_memlimit, debugtime. Each is sent when everything
// before it is answered, and nothing after it is read until it is.
//
//   command ─ all answered? ─▶ FanOut ─▶ every lane of every backend ─▶ the answer, put together
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
  // Some topics need no backend: they are answered at once, or by `admin`.
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
  pool::FanOut* fan_out_ = nullptr;                              // deletes itself when it is over
  memcache::StatsTopic topic_ = memcache::StatsTopic::kGeneral;  // of the fan-out under way
  op::AdminVerb verb_ = op::AdminVerb::kMemoryLimit;             // likewise
};

}  // namespace egret::proxy
