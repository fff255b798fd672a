#include "bench_paradigms/harness/session_run.h"

#include "bench/keyspace.h"
#include "bench_paradigms/notice.h"

namespace egret::bench_paradigms {

using base::Expected;
using base::Status;

Expected<RunAnswer> SessionRunner::run(const Paradigm& paradigm, const Case& one, const std::atomic<bool>& /*stop*/) {
  RunOrder told = order_of(setting_, one, paradigm.has(OpKind::kNext));
  told.workload.stores_puts = paradigm.stores_puts;
  told.run = runs_++;
  Order order;
  order.paradigm = paradigm.id;
  order.plan = plan_of(setting_, one);
  order.keys = setting_.keys;
  order.workload = to_notice(told);
  auto result = session_.run(order, work_);
  if (!result) return result.status();
  RunAnswer answer;
  answer.not_available = result.value().not_available;
  if (!answer.not_available.empty()) return answer;
  for (const std::string& figures : result.value().figures) {
    NodeOutcome node;
    if (!read_notice(figures, node)) return Status::error("a node of another build has told its figures");
    answer.outcome.add(node);
  }
  return answer;
}

}  // namespace egret::bench_paradigms
