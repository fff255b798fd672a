// Runs over a session: the nodes are threads of several hosts, and their outcomes come back to the listening one.
#pragma once

#include "bench_paradigms/harness/node_work.h"
#include "bench_paradigms/harness/rounds.h"

namespace egret::bench_paradigms {

// Of the listening side. All that it is given outlives it.
class SessionRunner final : public Runner {
 public:
  SessionRunner(const Setting& setting, Session& session, HarnessWork& work)
      : setting_(setting), session_(session), work_(work) {}

  base::Expected<RunAnswer> run(const Paradigm& paradigm, const Case& one, const std::atomic<bool>& stop) override;
  Capabilities capabilities() const override { return session_.capabilities(); }

 private:
  const Setting& setting_;
  Session& session_;
  HarnessWork& work_;
  uint64_t runs_ = 0;
};

}  // namespace egret::bench_paradigms
