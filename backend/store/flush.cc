// flush_all, by memcached's rule.
//
// A flush without delay hides every version given out so far. A flush with a delay of N seconds works in whole seconds,
// as memcached's does: received in second T, it fires when second D = T + N - 1 begins and hides everything stored up
// to the end of second D. Items stored from second T + N on stay. A newer flush replaces a pending one. A flush at an
// absolute time before the server's start cancels the pending one and hides nothing.
//
//   flush_second_ = 0                        nothing pending; versions below flushed_before are hidden
//   flush_second_ > now                     pending
//   flush_second_ = now                     firing: everything is hidden, flushed_before = kEverything
//   flush_second_ < now, at a begin_pass()  fired: flushed_before becomes the next version
//
// Unlike in memcached, a delayed flush does not make visible again what an earlier flush hid.
#include "store/answer.h"
#include "store/store.h"

namespace egret::store {

namespace {
constexpr uint64_t kEverything = UINT64_MAX;
constexpr int64_t kThirtyDays = 2'592'000;
constexpr int64_t kStartMargin = 62;  // seconds: memcached's clock starts this long before the process
}  // namespace

op::Result Store::flush(const op::Op& op) {
  ++items_.counters[op::StatId::kCmdFlush];
  if (items_.flushed_before == kEverything) items_.flushed_before = items_.version;
  flush_second_ = 0;
  const bool is_absolute = op.exptime > kThirtyDays;
  if (is_absolute && op.exptime <= start_second_ - kStartMargin) return answer(op::ResultCode::kOk);
  const int64_t fires = is_absolute ? op.exptime - 1 : items_.now + op.exptime - 1;
  if (op.exptime <= 0 || fires < items_.now) {
    items_.flushed_before = ++items_.version;
    sweeper_.on_flush();
    return answer(op::ResultCode::kOk);
  }
  if (fires <= UINT32_MAX) flush_second_ = static_cast<uint32_t>(fires);
  if (flush_second_ == items_.now) fire_flush();
  return answer(op::ResultCode::kOk);
}

void Store::fire_flush() {
  sweeper_.on_flush();
  if (items_.now == flush_second_) {
    items_.flushed_before = kEverything;
  } else {
    items_.flushed_before = items_.version;
    flush_second_ = 0;
  }
}

}  // namespace egret::store
