// One client connection: composes a batch of requests, writes it with one send(), and checks every answer.
//
//   add_get/add_set -> out_ -> flush() -> socket -> receive() -> in_ -> judge: right key? right length? its own
//   content?
//
// Derived classes implement the protocols (text_connection.h, binary_connection.h). The owner may compose further
// requests while earlier ones are unanswered, within the batch limits. All memory is allocated at construction. Owned
// and used by one generator thread.
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
    kDone,     // everything is written; or everything that had arrived is checked
    kBlocked,  // flush: call again when the socket is writable
    kLost,     // the connection is broken; requests in flight are counted as failed
  };

  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  virtual ~Connection() = default;

  int fd() const { return fd_.get(); }
  bool is_idle() const { return answered_ == requests_.size(); }
  bool is_lost() const { return !fd_.is_open(); }
  uint64_t unanswered() const { return requests_.size() - answered_; }

  // Starts a new batch after the requests that are still unanswered. `intended_ns`: when the request should be sent;
  // its latency counts from then.
  void begin_batch();
  virtual void add_get(std::span<const uint32_t> keys, uint64_t intended_ns) = 0;
  virtual void add_set(uint32_t key, uint64_t version, uint64_t intended_ns) = 0;

  Outcome flush();
  // Reads at most so many bytes, and at most what fits into the buffer.
  Outcome receive(size_t at_most = SIZE_MAX);

  // Counts requests in flight as failed and closes the socket.
  void abandon(std::string_view why);

 protected:
  struct Request {
    uint64_t intended_ns;
    uint32_t first_key;  // into keys_
    uint32_t key_count;
    bool is_set;
  };
  enum class Step : uint8_t { kAgain, kNeedMore, kLost };

  // `fd`: connected. `keyspace` and `tally` outlive the connection. `largest_request`: bytes of one request of the
  // batch. `largest_answer`: bytes that must be in the buffer at once to check an answer.
  Connection(base::UniqueFd fd, const Keyspace& keyspace, const BatchLimits& limits, Tally& tally,
             size_t largest_request, size_t largest_answer);

  // Checks the beginning of `input`, which is not empty, as (a part of) the answer to current_request(), and consumes
  // it by consume().
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

  // The batch: the next answer is to requests_[answered_]; key_cursor_ counts its keys that are answered.
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
  size_t in_begin_ = 0;  // checked up to here
  size_t in_end_ = 0;    // received up to here
};

// A connection that speaks `protocol`; see the constructor above for the rest.
std::unique_ptr<Connection> make_connection(Protocol protocol, base::UniqueFd fd, const Keyspace& keyspace,
                                            const BatchLimits& limits, Tally& tally);

}  // namespace egret::bench
