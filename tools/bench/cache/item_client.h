// One blocking connection that stores and reads items with known content, many per round trip, and checks every byte of
// the answers.
//
//   add_set, add_set ... add_get, add_get ... -> send(): the sets, then one get of all the keys -> receive() -> Answers
//
// The get comes last: a server answers a set by a few bytes, and the get only after it has read all of it, so the two
// sides cannot block each other with full socket buffers. At most one batch is outstanding. Owned and used by one
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "bench/client/address.h"

namespace egret::bench_cache {

inline constexpr uint32_t kKeySize = 16;

// 'k' and the number in 15 hexadecimal digits.
void write_key(char* out, uint64_t number);

// The content of a value is derived from the key's number and the version (bench/keyspace.h).
struct Item {
  uint32_t key = 0;
  uint32_t size = 0;  // bytes of the value
  uint32_t version = 0;
};

struct Answers {
  uint64_t stored = 0;
  uint64_t refused = 0;  // sets answered with "out of memory"
  uint64_t hits = 0;
  uint64_t wrong = 0;            // values of another key or version, or torn ones
  std::vector<uint32_t> missed;  // the gets without a value, by their order of add_get(), ascending
  std::string first_wrong;
};

class ItemClient {
 public:
  static base::Expected<ItemClient> connect(const bench::Address& address);

  // `exptime`: seconds, as memcached takes it; 0: never. At most kMaxSets sets and kMaxGets gets in a batch.
  void add_set(const Item& item, uint32_t exptime);
  // If there is a value, it must be this item's.
  void add_get(const Item& item);

  bool has_batch() const { return sets_ != 0 || !gets_.empty(); }
  bool is_under_way() const { return is_under_way_; }

  // After an error of either, the connection is unusable.
  base::Status send();
  base::Status receive(Answers& answers);  // overwrites `answers`

  static constexpr uint32_t kMaxSets = 1000;
  static constexpr uint32_t kMaxGets = 200;

 private:
  explicit ItemClient(base::UniqueFd fd);

  base::Status receive_sets(Answers& answers);
  base::Status receive_gets(Answers& answers);
  // `line`: a VALUE line. `cursor`: the first unanswered get; moved behind the get of this line.
  base::Status receive_value(std::string_view line, size_t& cursor, Answers& answers);
  void judge(const Item& item, const char* value, Answers& answers);

  // Views are valid until the next call.
  base::Expected<std::string_view> read_line();  // without its CRLF
  base::Expected<const char*> read_bytes(size_t size);
  base::Status read_more();

  base::UniqueFd fd_;
  uint32_t sets_ = 0;
  std::vector<Item> gets_;
  std::string out_;       // the sets
  std::string get_line_;  // " KEY KEY ..."
  bool is_under_way_ = false;

  std::vector<char> in_;
  size_t in_begin_ = 0;   // checked up to here
  size_t in_end_ = 0;     // received up to here
  std::string expected_;  // the expected value
};

}  // namespace egret::bench_cache
