// How a lane waits for its results: F (bytes of the first READ) and R (refetches before server reply), learned per
// lane. Both parameters, and the switch between the two modes, are from the RFP paper, sections III and IV (listed in
// docs/architecture.md).
//
//   kFetch   the client fetches until the result is there
//   kReply   the client asks with the request that the result be pushed
//
// Which of them is an option: one of the two, or auto, which is kReply for one of these reasons:
//
// kSlow     after two messages in a row that needed more than R refetches, until some responses in a row had a short
//           processing time. If the lane soon becomes slow again, that number doubles, so that a machine with fewer cores
//           than threads (where waiting is long although processing is short) settles.
// kCheap    the backend says that pushing is cheap
// kQuicker  pushing brings this lane's results much earlier (waiting/push_gain.h)
//
// The last two only where the backend can be asked with the request (wire::kDeliver). Pure: no I/O, no clock of its own.
// Thread: the lane's worker.
#pragma once

#include <cstdint>

#include "rpc/waiting/push_gain.h"

namespace egret::rpc {

enum class FetchMode : uint8_t {
  kAuto,   // the hybrid
  kFetch,  // never asks with the request; a client that sleeps still sets want
  kReply,  // always asks with the request
};

struct FetchOptions {
  FetchMode mode = FetchMode::kAuto;
  uint32_t max_refetches = 5;         // R
  uint64_t local_refetch_ns = 2'000;  // on shm one refetch is charged per this long waited
  uint32_t min_fetch = 256;           // F's bounds; a slot that is smaller is fetched whole
  uint32_t max_fetch = 64 * 1024;
  uint64_t short_processing_ns = 7'000;  // beyond this, fetching has no advantage (RFP, section V)
};

class FetchPolicy {
 public:
  enum class Mode : uint8_t { kFetch, kReply };
  // Why it is kReply; kSet: by an option.
  enum class Reason : uint8_t { kNone, kSet, kSlow, kCheap, kQuicker };

  explicit FetchPolicy(const FetchOptions& options) : options_(options) { choose(); }

  Mode mode() const { return reason_ == Reason::kNone ? Mode::kFetch : Mode::kReply; }
  Reason reason() const { return reason_; }
  // Changes the options; learned values stay.
  void set_options(const FetchOptions& options);
  // Over a network: the delay from sending a message to its first fetch; and from a fetch that found nothing, the
  // `refetches`th, seen `waited_ns` after sending, to the next one. The delay is learned so that one fetch in a dozen
  // messages finds nothing: fewer would make all others wait for the slowest, more would cost both devices a READ each.
  uint64_t first_fetch_ns() const { return first_fetch_ns_; }
  static uint64_t refetch_ns(uint64_t waited_ns, uint32_t refetches);
  // A message was answered, after so many fetches that found nothing, the last of them `vain_ns` after it was sent. Do
  // not call it for a message whose lane was asleep.
  void on_first_fetch(uint32_t refetches, uint64_t vain_ns);
  // Where the backend can be asked with the request: a READ took so long; a message's result was seen so long after it
  // was sent, as fetched or as pushed, of which the server took `processing_ns`; whether the backend says that pushing is
  // cheap. Not for a message whose lane was asleep.
  void on_read(uint64_t trip_ns) { gain_.on_read(trip_ns); }
  void on_fetched(uint64_t waited_ns, uint64_t processing_ns, uint32_t refetches);
  // `is_behind`: it was sent before a late one was answered, so that it would have been fetched behind that. Returns
  // whether fetches would have come too early.
  bool on_pushed(uint64_t waited_ns, uint64_t processing_ns, bool is_behind);
  void on_hint(bool is_cheap);
  // Bytes that the first READ of a response takes, header included.
  uint32_t fetch_size() const;
  // Value bytes to expect of a get, for packing.
  uint32_t expected_value() const { return value_average_; }

  // A response came: how many fetches found nothing (on shm the equivalent of the wait), how long the server took.
  void on_response(uint32_t refetches, uint64_t processing_ns, uint32_t response_bytes);
  void on_value(uint32_t length) { value_average_ = follow(value_average_, length); }

 private:
  // A running average that follows growth quickly (by half) and decay slowly, since packing too many ops costs another
  // message.
  static uint32_t follow(uint32_t average, uint32_t sample) {
    if (sample > average) return average + (sample - average + 1) / 2;
    return average - (average - sample) / 16;
  }
  void choose();
  void become_slow();
  PushGain::Fetched fetch_as_if(uint64_t ready_ns, bool is_behind);

  static constexpr uint32_t kMinPatience = 64;
  static constexpr uint32_t kMaxPatience = 1 << 16;

  FetchOptions options_;
  Reason reason_ = Reason::kNone;
  bool is_slow_ = false;
  bool is_cheap_ = false;
  PushGain gain_;
  uint32_t slow_in_a_row_ = 0;
  uint32_t short_in_a_row_ = 0;
  uint32_t patience_ = kMinPatience;      // short responses needed to return to fetching
  uint32_t since_return_ = kMaxPatience;  // responses since the last return; at first high, as no mistake
  uint64_t first_fetch_ns_ = 0;
  uint32_t hits_in_a_row_ = 0;  // first fetches that found their result
  uint32_t misses_in_a_row_ = 0;
  uint32_t response_average_ = 0;
  uint32_t value_average_ = 0;
};

}  // namespace egret::rpc
