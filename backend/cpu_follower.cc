#include "backend/cpu_follower.h"

#include <algorithm>
#include <utility>

#include "base/cpu.h"

namespace egret::backend {

CpuFollower::CpuFollower(std::vector<int> cpus) : cpus_(std::move(cpus)) {}

void CpuFollower::on_ring(int cpu) {
  if (std::ranges::find(cpus_, cpu) == cpus_.end()) cpu = -1;
  sleepless_ = 0;
  if (taken_ >= 0 && ++stayed_ >= kStay) move_to(-1);
  if (cpu == taken_ || cpu != wished_) times_wished_ = 0;
  wished_ = cpu;
  if (cpu != taken_ && ++times_wished_ >= kSure) move_to(cpu);
}

void CpuFollower::on_busy() {
  if (taken_ >= 0 && ++sleepless_ >= kSleepless) move_to(-1);
}

void CpuFollower::move_to(int cpu) {
  taken_ = cpu;
  times_wished_ = stayed_ = sleepless_ = 0;
  if (cpu < 0) {
    base::let_this_thread_run_on(cpus_);
  } else {
    base::pin_this_thread(cpu);
  }
}

}  // namespace egret::backend
