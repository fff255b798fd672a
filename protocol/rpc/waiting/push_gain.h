// Whether a lane's results should be pushed, since fetching brings them so much later, or so often looks in vain. Results
// that come at very different moments cannot be fetched both early and seldom in vain.
//
//   fetched   what a message took beyond its processing, by fetches; while results are pushed: by fetches as they would
//             have been
//   pushed    the same by a push; until one was seen: a READ's round trip
//
// Averages over some hundred messages. They must differ for long before the way changes; and if a change is soon taken
// back, that takes longer next time. Times are of this client's clock, but for processing, which is the server's word:
// whatever it is, only the way changes. Pure. Thread: the lane's worker.
#pragma once

#include <cstdint>

namespace egret::rpc {

class PushGain {
 public:
  // A READ took so long.
  void on_read(uint64_t trip_ns);
  // How a message's result was fetched, or would have been.
  struct Fetched {
    uint64_t waited_ns = 0;  // from sending to seeing it
    uint32_t refetches = 0;
  };
  // A message's result was fetched; or pushed, and seen `waited_ns` after it was sent. The server took `processing_ns` of
  // that.
  void on_fetched(const Fetched& fetched, uint64_t processing_ns);
  void on_pushed(uint64_t waited_ns, uint64_t processing_ns, const Fetched& as_if);

  bool is_pushing() const { return is_pushing_; }
  // Of a pushed result, how long after sending the first READ could have been staged that would have found it.
  uint64_t ready_ns(uint64_t waited_ns) const;
  uint64_t trip_ns() const { return static_cast<uint64_t>(trip_ns_ > 0 ? trip_ns_ : pushed_.mean); }

 private:
  struct Average {
    double mean = 0;
    uint32_t count = 0;
    void add(uint64_t sample);
  };
  void add(const Fetched& fetched, uint64_t processing_ns);
  void judge();

  static constexpr uint32_t kLeastPatience = 64;
  static constexpr uint32_t kMostPatience = 1 << 16;
  static constexpr uint32_t kSettling = 256;

  double trip_ns_ = 0;   // 0: no READ was seen yet
  double post_ns_ = -1;  // what the posting of a push takes beyond a READ's trip; negative: no push was seen yet
  uint32_t settling_ = kSettling;  // messages that are not looked at: the lane learns when to fetch
  Average processing_, fetched_, pushed_;
  Average vain_;  // fetches that found nothing, of a thousand messages
  bool is_pushing_ = false;
  uint32_t in_a_row_ = 0;                  // messages after which the other way would have been right
  uint32_t patience_ = kLeastPatience;     // how many of these it takes
  uint32_t since_change_ = kMostPatience;  // messages
};

}  // namespace egret::rpc
