// One client connection: composes a batch of requests, writes it with one send(), and judges every answer.
//
//   add_get/add_set -> out_ -> flush() -> socket -> receive() -> in_ -> judge: right key? right length? its own
//   content?
//
// What the bytes look like is its heirs' affair (text_connection.h, binary_connection.h). The owner may compose further
// requests while earlier ones are unanswered, but no more in all than the batch limits say. All memory is allocated at
// construction. Owned and used by one generator thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "bench/keyspace.h"
#include "bench/load_spec.h"
#include "bench/tally.h"

namespace egret::bench {

// The largest batch that will be composed.
struct BatchLimits {
  uint32_t requests = 1;  // unanswered at the same time
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

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  virtual ~Connection() = default;

  int fd() const { return fd_.get(); }
  bool is_idle() const { return answered_ == requests_.size(); }
  bool is_lost() const { return !fd_.is_open(); }
  uint64_t unanswered() const { return requests_.size() - answered_; }

  // Starts a new batch, behind what is still unanswered. `intended_ns`: when the request should be sent; its latency
  // counts from there.
  void begin_batch();
  virtual void add_get(std::span<const uint32_t> keys, uint64_t intended_ns) = 0;
  virtual void add_set(uint32_t key, uint64_t version, uint64_t intended_ns) = 0;

  Outcome flush();
  // Reads at most so many bytes, and no more than there is room for.
  Outcome receive(size_t at_most = SIZE_MAX);

  // Counts what is in flight as failed and closes the socket.
  void abandon(std::string_view why);

 protected:
  struct Request {
    uint64_t intended_ns;
    uint32_t first_key;  // into keys_
    uint32_t key_count;
    bool is_set;
  };
  enum class Step : uint8_t { kAgain, kNeedMore, kLost };

  // `fd`: connected. `keyspace` and `tally` outlive the connection. `largest_request`, `largest_answer`: bytes of one
  // request of the batch, and of what must be in the buffer at once to be judged.
  Connection(base::UniqueFd fd, const Keyspace& keyspace, const BatchLimits& limits, Tally& tally,
             size_t largest_request, size_t largest_answer);

  // Judges what `input`, which is not empty, begins with, as (a part of) the answer to current_request(); takes it with
  // consume().
  virtual Step judge(std::string_view input, uint64_t now_ns) = 0;

  void add_request(std::span<const uint32_t> keys, bool is_set, uint64_t intended_ns);
  void append(std::string_view text);
  void append_value(uint32_t key, uint64_t version);

  const Request& current_request() const { return requests_[answered_]; }
  uint32_t key_of(const Request& request, uint32_t position) const { return keys_[request.first_key + position]; }
  void consume(size_t bytes) { in_begin_ += bytes; }
  void count_value(const char* value, uint32_t key);
  void finish_request(uint64_t now_ns);
  Step lose(std::string_view why);

  const Keyspace& keyspace_;
  Tally& tally_;
  const uint32_t value_size_;
  const size_t in_capacity_;

  // The batch: requests_[answered_] is the one whose answer comes next; key_cursor_ is how many of its keys are
  // settled.
  std::vector<Request> requests_;
  uint32_t key_cursor_ = 0;

 private:
  Step judge_next(uint64_t now_ns);

  base::UniqueFd fd_;
  std::vector<uint32_t> keys_;
  size_t answered_ = 0;

  size_t out_capacity_;
  std::unique_ptr<char[]> out_;
  size_t out_size_ = 0;
  size_t out_written_ = 0;

  std::unique_ptr<char[]> in_;
  size_t in_begin_ = 0;  // judged up to here
  size_t in_end_ = 0;    // received up to here
};

// A connection that speaks `protocol`; see the constructor above for the rest.
std::unique_ptr<Connection> make_connection(Protocol protocol, base::UniqueFd fd, const Keyspace& keyspace,
                                            const BatchLimits& limits, Tally& tally);

}  // namespace egret::bench
