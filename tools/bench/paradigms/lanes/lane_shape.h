// What the two ends of a session agree on. Plain values.
#pragma once

#include <string>

#include "base/status.h"
#include "bench_paradigms/lanes/fabric_ends.h"
#include "wire/slot.h"

namespace egret::bench_paradigms {

struct LaneShape {
  wire::RegionLayout layout;  // of one lane
  bool is_inline = true;      // small WRITEs go with the work request

  // Fails where one op does not fit a slot.
  base::Status check() const {
    return layout.is_valid() ? base::Status::ok() : base::Status::error("an op must fit a slot of 64 KiB");
  }
  EndSpec end() const {
    return {.shape = {.lanes = layout.lanes,
                      .request_bytes = layout.request_bytes(),
                      .response_bytes = layout.response_bytes(),
                      .reply_bytes = layout.response_slot_size},
            .window = layout.window,
            .is_inline = is_inline};
  }
};

}  // namespace egret::bench_paradigms
