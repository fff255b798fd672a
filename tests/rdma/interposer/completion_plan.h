// How the program is told of completions: later than the device would, or of none at all.
//
//   EGRET_VERBS_WITHHOLD=POLLS[:every N]
//     A poll that finds completions gives none of them to the program, nor do the next POLLS - 1 polls of that queue; the poll
//     behind them gives all. When the program has asked for an event (ibv_req_notify_cq), nothing is withheld until a poll finds
//     nothing: no event comes for a completion that is there already, so the program would sleep for ever.
//     every N: only the Nth, 2Nth … poll that finds completions; else each
//   EGRET_VERBS_SPURIOUS=every N
//     Each Nth request for an event makes the channel readable at once, and ibv_get_cq_event gives an event of that queue though
//     nothing has completed. The event that was asked for comes as well. The program must not block in ibv_get_cq_event.
//
// Counted: `withheld` (completions) and `spurious_events`. What cannot be read ends the process. Thread-safe.
//
//   the provider's poll ─▶ bring() ─▶ the program's poll          req_notify_cq ─▶ asked()
//   channel->fd = an epoll of [the device's descriptor | an eventfd], so that whoever waits for it wakes up for either
#pragma once

#include <functional>

#include <infiniband/verbs.h>

namespace egret::interposer {

// What a poll of `queue` brings into `completions`, of which there is room for `most`. `provider`: the device's poll.
using Poll = std::function<int(int most, ibv_wc* completions)>;
int bring(ibv_cq* queue, int most, ibv_wc* completions, const Poll& provider);
// The queue is asked for an event.
void asked(ibv_cq* queue);
void forget_queue(ibv_cq* queue);

// To be called when a channel was made, and before it is destroyed: between the two `channel->fd` is the epoll.
void watch_channel(ibv_comp_channel* channel);
void forget_channel(ibv_comp_channel* channel);
// While it exists, `channel->fd` is the device's descriptor again: for calls that pass it to the kernel. One at a time.
class DeviceDescriptor {
 public:
  explicit DeviceDescriptor(ibv_comp_channel* channel);  // null: nothing
  ~DeviceDescriptor();
  DeviceDescriptor(const DeviceDescriptor&) = delete;
  DeviceDescriptor& operator=(const DeviceDescriptor&) = delete;

 private:
  ibv_comp_channel* const channel_;
  int ours_ = -1;
};
// A spurious event that is due on this channel: its queue; null: none.
ibv_cq* take_spurious_event(ibv_comp_channel* channel);
// How many of `events` that the program acknowledges are the device's.
unsigned events_of_device(ibv_cq* queue, unsigned events);

}  // namespace egret::interposer
