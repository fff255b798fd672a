// One client connection: composes a batch of requests, writes it with one send(), and judges every answer.
//
//   add_get/add_set -> out_ -> flush() -> socket -> receive() -> in_ -> judge: right key? right length? its own
//   content?
//
// At most one batch is in flight: the owner composes the next one when is_idle(). All memory is allocated at
// construction; the batch limits say how much. Owned and used by one generator thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "bench/keyspace.h"
#include "bench/tally.h"

namespace egret::bench {

// The largest batch that will be composed.
struct BatchLimits {
  uint32_t requests = 1;
  uint32_t keys_per_get = 1;
  uint32_t value_size = 0;
};

class Connection {
 public:
  enum class Outcome : uint8_t {
    kDone,     // all written; or all that had arrived is judged
    kBlocked,  // flush: call again when the socket can be written
    kLost,     // the connection is of no further use; what was in flight is counted as failed
  };

  // `fd`: connected. `keyspace` and `tally` outlive the connection.
  Connection(base::UniqueFd fd, const Keyspace& keyspace, const BatchLimits& limits, Tally& tally);

  int fd() const { return fd_.get(); }
  bool is_idle() const { return answered_ == requests_.size(); }
  bool is_lost() const { return !fd_.is_open(); }
  uint64_t unanswered() const { return requests_.size() - answered_; }

  // Starts a new batch. Only when idle. `intended_ns`: when the request should be sent; its latency counts from there.
  void begin_batch();
  void add_get(std::span<const uint32_t> keys, uint64_t intended_ns);
  void add_set(uint32_t key, uint64_t version, uint64_t intended_ns);

  Outcome flush();
  Outcome receive();

  // Counts what is in flight as failed and closes the socket.
  void abandon(std::string_view why);

 private:
  struct Request {
    uint64_t intended_ns;
    uint32_t first_key;  // into keys_
    uint32_t key_count;
    bool is_set;
  };
  enum class Step : uint8_t { kAgain, kNeedMore, kLost };

  Step judge_next(uint64_t now_ns);
  Step judge_set(const Request& request, std::string_view input, uint64_t now_ns);
  Step judge_get(const Request& request, std::string_view input, uint64_t now_ns);
  Step judge_value_of_next_key(std::string_view input, size_t header_size);
  Step judge_unexpected_value(const Request& request, std::string_view input);
  Step judge_error_line(std::string_view input, uint64_t now_ns);
  void finish_request(uint64_t now_ns);
  Step lose(std::string_view why);
  void append(std::string_view text);

  base::UniqueFd fd_;
  const Keyspace& keyspace_;
  Tally& tally_;
  const uint32_t value_size_;
  const std::string set_suffix_;    // " 0 0 <length>\r\n"
  const std::string value_suffix_;  // " 0 <length>\r\n"

  // The batch: requests_[answered_] is the one whose answer comes next; key_cursor_ is how many of its keys are
  // settled.
  std::vector<Request> requests_;
  std::vector<uint32_t> keys_;
  size_t answered_ = 0;
  uint32_t key_cursor_ = 0;

  size_t out_capacity_;
  std::unique_ptr<char[]> out_;
  size_t out_size_ = 0;
  size_t out_written_ = 0;

  size_t in_capacity_;
  std::unique_ptr<char[]> in_;
  size_t in_begin_ = 0;  // judged up to here
  size_t in_end_ = 0;    // received up to here
};

}  // namespace egret::bench
