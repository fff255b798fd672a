// What a worker's thread drives beside its clients: in one process with a store, the partitions that the worker owns.
//
//   begin ─▶ each pass: poll ─▶ before the worker blocks: prepare_sleep ─▶ ... ─▶ the worker's clients and sessions are gone: end
//
// Thread: the worker's.
#pragma once

#include "events/event.h"

namespace egret::proxy {

class LoopPoller {
 public:
  virtual ~LoopPoller() = default;
  // What it waits for it watches in the worker's loop from now on.
  virtual void begin(events::EventLoop& loop) = 0;
  // Does what there is to do at present, a bounded part of it. Whether it did anything: results may be there.
  virtual bool poll() = 0;
  // The last thing before the worker blocks: whether it may. Not yet: it is to poll first.
  virtual bool prepare_sleep() = 0;
  // Goes on by itself until nobody in the process needs it any more.
  virtual void end() = 0;
  // transport::ConnectOptions::home, of the worker's sessions.
  virtual int home() const = 0;
};

}  // namespace egret::proxy
