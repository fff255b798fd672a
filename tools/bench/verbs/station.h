// One end of what connects two hosts: the control connection, over which the listening side says what to do; the data
// queue pairs; the memory that verbs come from and go to.
//
//   local    each queue pair's slots here: WRITEs come from them, READs land in them
//   target   each queue pair's slots as the *other* side reaches them
//
//   slot     [request 64] [payload size] [guard 64]      max_size + 128 bytes apart
//
// Every payload is a pattern of (point, queue pair, slot). Before a point its destination is poisoned, afterwards its
// bytes are compared, guard included: `prepare` and `check` on the target's side, `Poster` on the posting one.
// Thread: one at a time, but data queue pairs are the posting threads' during a point.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench_verbs/point.h"
#include "bench_verbs/verbs.h"

namespace egret::bench_verbs {

struct Shape {
  uint32_t queue_pairs = 1;
  uint32_t max_size = 0;
  uint32_t depth = 1;  // slots of a queue pair

  static constexpr uint32_t kGuard = 64;
  size_t slot_bytes() const { return size_t{kRequestBytes} + max_size + kGuard; }
  size_t bytes() const { return slot_bytes() * depth * queue_pairs; }
  size_t slot(uint32_t pair, uint32_t slot) const { return (size_t{pair} * depth + slot) * slot_bytes(); }
};

struct Message {
  enum class Type : uint32_t { kWelcome = 1, kHello, kPrepare, kReady, kRun, kFigures, kCheck, kChecked, kText, kEnd };
  Type type = Type::kEnd;
  uint32_t client = 0;  // kWelcome
  Shape shape;          // kWelcome
  uint64_t target_address = 0;
  uint32_t target_key = 0;
  uint32_t cpus = 0;      // kHello: that the client may use
  uint32_t emulated = 0;  // kHello
  uint32_t length = 0;    // of text
  Point point;
  Figures figures;
  char text[256] = {};  // kText: a part of the report; kHello: the device; kFigures: what went wrong, if anything
  void set_text(const std::string& words);
  std::string words() const { return {text, length}; }
};

class Station {
 public:
  Station() = default;
  Station(const Station&) = delete;
  Station& operator=(const Station&) = delete;

  // The control connection, not connected yet: `id` says which device.
  base::Status open(CmId id);
  Connection& control() { return *control_; }
  // The memory, once the shape is known.
  base::Status create_memory(const Shape& shape);
  // A data queue pair, not connected yet.
  base::Expected<Connection*> add(CmId id);

  base::Status send(const Message& message);
  // Waits; fails when the other side is gone, says something else, or says nothing for `patience_s`.
  base::Expected<Message> receive(Message::Type type, double patience_s);
  base::Expected<Message> receive(double patience_s);

  // The target's side of a point.
  void prepare(const Point& point);
  uint64_t check(const Point& point) const;  // wrong bytes

  const Shape& shape() const { return shape_; }
  uint32_t pairs() const { return static_cast<uint32_t>(data_.size()); }
  Connection& pair(uint32_t index) { return *data_[index]; }
  const Memory& local() const { return *local_; }
  const Memory& target() const { return *target_; }
  void set_peer(uint64_t address, uint32_t key) {
    peer_address_ = address;
    peer_key_ = key;
  }
  uint64_t peer_address(uint32_t pair, uint32_t slot) const { return peer_address_ + shape_.slot(pair, slot); }
  uint32_t peer_key() const { return peer_key_; }
  std::byte* local_slot(uint32_t pair, uint32_t slot) const { return local_->data() + shape_.slot(pair, slot); }

 private:
  static constexpr uint32_t kMessages = 32;  // receives that are always posted
  void post_receive(uint32_t index);
  std::byte* buffer(uint32_t index) const { return messages_->data() + index * sizeof(Message); }

  Domain domain_;  // first: everything below is in it, and goes before it
  std::unique_ptr<Memory> messages_, local_, target_;
  std::unique_ptr<Connection> control_;
  std::vector<std::unique_ptr<Connection>> data_;
  std::vector<uint32_t> arrived_;  // messages that came while a send was waited for, in order
  Shape shape_;
  uint64_t peer_address_ = 0;
  uint32_t peer_key_ = 0;
};

// The pattern of a slot, and how many of `bytes` bytes at `at` are not it.
void fill_pattern(std::byte* at, size_t bytes, uint32_t point, uint32_t pair, uint32_t slot);
uint64_t wrong_bytes(const std::byte* at, size_t bytes, uint32_t point, uint32_t pair, uint32_t slot);
// Poison: what is nowhere in a pattern's place by chance, and how many bytes are not it.
void poison(std::byte* at, size_t bytes);
uint64_t unpoisoned_bytes(const std::byte* at, size_t bytes);

}  // namespace egret::bench_verbs
