// The store against std::map: any sequence of ops, uploads, pins and passing seconds gives the same results as the map
// (there is room for everything), and all invariants of the store hold.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "op/hash.h"
#include "op/records.h"
#include "store/number.h"
#include "store/store.h"

namespace {

using namespace egret;
using op::ResultCode;
using op::SetMode;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "store_fuzz: %s\n", what);
  std::abort();
}

// The input, taken byte by byte; zeros when it has run out.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), end_(data + size) {}
  bool is_over() const { return data_ == end_; }
  uint8_t byte() { return is_over() ? uint8_t{0} : *data_++; }

 private:
  const uint8_t* data_;
  const uint8_t* end_;
};

struct Entry {
  std::string value;
  uint32_t flags = 0;
  int64_t deadline = 0;
};

struct Pinned {
  store::Store::Pin pin;
  std::string value;
};

class Run {
 public:
  explicit Run(Input input) : input_(input) {
    store::StoreConfig config;
    config.memory_limit = store::kMinMemory;
    config.item_size_max = 64u << 10;
    config.evict = false;
    config.clock = &clock_;
    store_ = std::move(store::Store::create(config).value());
  }

  void run() {
    for (int step = 0; !input_.is_over() && step < 2000; ++step) {
      one_op();
      if (step % 64 == 0) check();
    }
    check();
  }

 private:
  op::Op keyed(op::OpCode code) {
    key_ = "k" + std::to_string(input_.byte() % 24);
    key_.resize(key_.size() + input_.byte() % 3 * 8, '-');
    op::Op op;
    op.code = code;
    op.key = key_;
    op.hash = op::hash_key(key_, 0);
    return op;
  }

  Entry* find(const std::string& key) {
    const auto at = map_.find(key);
    if (at == map_.end()) return nullptr;
    if (at->second.deadline == 0 || at->second.deadline > clock_.unix_seconds()) return &at->second;
    map_.erase(at);
    return nullptr;
  }
  int64_t deadline(int64_t exptime) const {
    return exptime < 0 ? 1 : exptime == 0 ? 0 : clock_.unix_seconds() + exptime;
  }

  void one_op() {
    switch (input_.byte() % 10) {
      case 0:
      case 1:
      case 2:
        return set();
      case 3:
      case 4:
        return get();
      case 5:
        return erase();
      case 6:
        return arith();
      case 7:
        return pin();
      case 8:
        return upload();
      default:
        return pass_or_flush();
    }
  }

  op::Op make_set() {
    op::Op op = keyed(op::OpCode::kSet);
    op.mode = SetMode(input_.byte() % op::kSetModes);
    op.client_flags = input_.byte() % 2 * 77u;
    op.exptime = static_cast<int64_t>(input_.byte() % 6) - 1;
    const uint8_t shape = input_.byte();
    const bool extends = op.mode == SetMode::kAppend || op.mode == SetMode::kPrepend;
    value_ = shape % 4 == 0 ? std::to_string(shape * 12345ull)
                            : std::string(size_t{1} * shape * (extends ? 1 : shape % 32), 'a' + shape % 26);
    op.value = value_;
    return op;
  }

  ResultCode model_set(const op::Op& op) {
    Entry* old = find(key_);
    if (op.mode == SetMode::kAdd || op.mode == SetMode::kFill ? old != nullptr
                                                              : op.mode != SetMode::kSet && old == nullptr)
      return ResultCode::kNotStored;
    if (op.mode == SetMode::kAppend || op.mode == SetMode::kPrepend) {
      if (old->value.size() + value_.size() > 60'000) return ResultCode::kNotStored;
      old->value.insert(op.mode == SetMode::kAppend ? old->value.size() : 0, value_);
    } else {
      map_[key_] = {value_, op.client_flags, deadline(op.exptime)};
    }
    return ResultCode::kStored;
  }

  // Where the store has no room, it says so; the map follows.
  void compare_set(const op::Op& op, ResultCode got) {
    if (got == ResultCode::kOutOfMemory || got == ResultCode::kTooLarge) {
      if (op.mode == SetMode::kSet) map_.erase(key_);
      return;
    }
    if (got == ResultCode::kNotStored && (op.mode == SetMode::kAppend || op.mode == SetMode::kPrepend)) return;
    require(got == model_set(op), "a set was judged otherwise");
  }

  void set() {
    const op::Op op = make_set();
    compare_set(op, execute_one(*store_, op).code);
  }

  void get() {
    op::Op op = keyed(op::OpCode::kGet);
    const bool touches = input_.byte() % 4 == 0;
    if (touches) op.options = op::kTouch;
    op.exptime = static_cast<int64_t>(input_.byte() % 4) - 1;
    const op::Result got = execute_one(*store_, op);
    Entry* entry = find(key_);
    if (touches && got.code == ResultCode::kOutOfMemory) return;  // no room for an exptime
    require((got.code == ResultCode::kHit) == (entry != nullptr), "hit or miss");
    if (entry == nullptr) return;
    require(got.client_flags == entry->flags && got.total_length == entry->value.size(), "another item");
    if (!touches || op.exptime >= 0) require(whole(got) == entry->value, "another value");
    if (touches) entry->deadline = deadline(op.exptime);
  }

  // All that a result holds of a value, however many pieces it lies in.
  static std::string bytes_of(const op::Result& result) {
    std::string bytes(result.value);
    for (const std::string_view piece : result.further) bytes += piece;
    return bytes;
  }

  // What a get has answered, and the rest of it by chunks.
  std::string whole(const op::Result& got) {
    std::string value = bytes_of(got);
    while (value.size() < got.total_length) {
      op::Op chunk;
      chunk.code = op::OpCode::kChunk;
      chunk.key = key_;
      chunk.hash = op::hash_key(key_, 0);
      chunk.version = got.version;
      chunk.offset = static_cast<uint32_t>(value.size());
      chunk.length = got.total_length;
      const op::Result part = execute_one(*store_, chunk);
      require(part.code == ResultCode::kHit && !part.value.empty(), "a version is gone");
      value += bytes_of(part);
    }
    return value;
  }

  static std::string pinned(const store::Store::Pin& pin) {
    std::string value;
    while (value.size() < pin.length()) {
      const op::Result part = pin.chunk(static_cast<uint32_t>(value.size()), pin.length());
      require(part.code == ResultCode::kHit && !part.value.empty(), "a pinned version is gone");
      value += bytes_of(part);
    }
    return value;
  }

  void erase() {
    const op::Op op = keyed(op::OpCode::kDelete);
    const bool had = find(key_) != nullptr;
    require(execute_one(*store_, op).code == (had ? ResultCode::kDeleted : ResultCode::kMiss), "delete");
    map_.erase(key_);
  }

  void arith() {
    op::Op op = keyed(op::OpCode::kArith);
    op.delta = uint64_t{input_.byte()} << (input_.byte() % 57);
    if (input_.byte() % 2 == 0) op.options = op::kDecrement;
    const op::Result got = execute_one(*store_, op);
    Entry* entry = find(key_);
    if (got.code == ResultCode::kOutOfMemory) return;
    require((got.code == ResultCode::kMiss) == (entry == nullptr), "arith on nothing");
    if (entry == nullptr) return;
    const auto before = store::parse_number(entry->value);
    require((got.code == ResultCode::kNumber) == before.has_value(), "arith on no number");
    if (!before) return;
    const uint64_t number =
        (op.options & op::kDecrement) != 0 ? *before - std::min(*before, op.delta) : *before + op.delta;
    require(got.number == number, "another number");
    std::string digits = std::to_string(number);
    digits.resize(std::max(digits.size(), entry->value.size()), ' ');
    entry->value = digits;
  }

  void pin() {
    if (pins_.size() == 3) {
      const size_t which = input_.byte() % 3;
      require(pinned(pins_[which].pin) == pins_[which].value, "a pinned value changed");
      pins_.erase(pins_.begin() + static_cast<std::ptrdiff_t>(which));
      return;
    }
    const op::Op op = keyed(op::OpCode::kGet);
    store::Store::Pin pin = store_->pin(op.key, op.hash);
    const Entry* entry = find(key_);
    require(!pin || entry != nullptr, "a pin of nothing");
    if (!pin) return;
    require(pinned(pin) == entry->value, "a pin of another value");
    pins_.push_back({std::move(pin), entry->value});
  }

  void upload() {
    const op::Op op = make_set();
    auto reserved = store_->reserve(op.key, static_cast<uint32_t>(op.value.size()));
    if (reserved.code != ResultCode::kOk) return;
    const size_t cut = input_.byte() % (op.value.size() + 1);
    const ResultCode first = reserved.upload.write(0, op.value.substr(0, cut));
    require(first == ResultCode::kOk || first == ResultCode::kOutOfMemory, "the first part");
    if (first != ResultCode::kOk || input_.byte() % 4 == 0) return;
    const ResultCode second = reserved.upload.write(static_cast<uint32_t>(cut), op.value.substr(cut));
    require(second == ResultCode::kOk || second == ResultCode::kOutOfMemory, "the second part");
    if (second != ResultCode::kOk) return;
    compare_set(op, reserved.upload.commit(op).code);
  }

  void pass_or_flush() {
    const uint8_t what = input_.byte();
    if (what % 8 == 0) {
      op::Op op;
      op.code = op::OpCode::kFlush;
      execute_one(*store_, op);
      map_.clear();
    } else if (what % 2 == 0) {
      clock_.advance_seconds(what % 5);
      store_->begin_pass();
    } else if (what % 16 == 1) {
      walk();
    } else if (what % 16 == 3) {
      store_->set_memory_limit((1 + input_.byte() % 8u) * store::kMinMemory / 2);
      store_->idle_step();
    }
  }

  // Tells of what the map has, and of each once.
  void walk() {
    op::Op op;
    op.code = op::OpCode::kIterate;
    std::map<std::string, uint32_t> seen;
    for (int pages = 0; op.version != op::kWalkOver; ++pages) {
      require(pages < 10'000, "a walk does not end");
      const op::Result page = execute_one(*store_, op);
      const op::RecordPage cut = op::cut_records(page.value, page.version, op::kMaxRecord);
      std::string_view left = cut.records;
      for (op::Record record; op::take_record(left, record);) {
        require(seen.emplace(record.key, record.head.value_length).second, "an item is told of twice");
      }
      require(left.empty(), "a record is none");
      op.version = cut.cursor;
    }
    size_t live = 0;
    for (int number = 0; number < 24; ++number) {
      for (const size_t padding : {0u, 8u, 16u}) {
        std::string key = "k" + std::to_string(number);
        key.resize(key.size() + padding, '-');
        const Entry* entry = find(key);
        if (entry == nullptr) continue;
        ++live;
        const auto at = seen.find(key);
        require(at != seen.end() && at->second == entry->value.size(), "an item is not told of, or wrongly");
      }
    }
    require(live == seen.size(), "what is gone is told of");
  }

  void check() {
    std::string why;
    if (!check_invariants(*store_, &why)) require(false, why.c_str());
  }

  Input input_;
  base::ManualClock clock_;
  std::unique_ptr<store::Store> store_;
  std::vector<Pinned> pins_;
  std::map<std::string, Entry> map_;
  std::string key_;
  std::string value_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Run(Input(data, size)).run();
  return 0;
}
