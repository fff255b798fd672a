// What is asked of a member, partition by partition, when an owner is absent or returns: ops out, answers in. Pure
// logic: pool::Errand or a test carries the ops.
//
//   Entering: one op a partition ─▶ places       Reading: pages from the places on ─▶ keys, places
//   Purging: a delete for each key, or a flush of each partition       Marking: says up to where the owner is purged
//
// Thread: its owner's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "op/op.h"
#include "pool/gutter/failover.h"

namespace egret::pool {

class Dialogue {
 public:
  // Sends an op to a partition, or to that of its key (kOfKey); it is copied. Its answer comes back with `tag`.
  using Send = std::function<void(const op::Op& op, uint32_t partition, uint64_t tag)>;
  static constexpr uint32_t kOfKey = UINT32_MAX;

  virtual ~Dialogue() = default;
  virtual void begin(uint64_t epoch, uint32_t partitions, const Send& send) = 0;
  virtual void on_answer(uint64_t tag, const op::Result& result, const Send& send) = 0;
  // Empty: no answer was other than it must be.
  const std::string& fault() const { return fault_; }

 protected:
  void expect(const op::Result& result, op::ResultCode code, const char* what);

 private:
  std::string fault_;
};

// From then on the member takes ops in the place of the owner with that tag.
class Entering final : public Dialogue {
 public:
  explicit Entering(uint64_t tag) : tag_(tag) {}
  void begin(uint64_t epoch, uint32_t partitions, const Send& send) override;
  void on_answer(uint64_t tag, const op::Result& result, const Send& send) override;
  const Places& places() const { return places_; }

 private:
  const uint64_t tag_;
  Places places_;
};

// Reads the changes of an owner to their end.
class Reading final : public Dialogue {
 public:
  static constexpr uint32_t kSlot = 16 * 1024;  // bytes that a page should have room for
  // More keys are not taken: is_complete() is false then.
  static constexpr size_t kMostKeys = Failover::kMostKeys;

  Reading(uint64_t tag, Places places) : tag_(tag), places_(std::move(places)) {}
  void begin(uint64_t epoch, uint32_t partitions, const Send& send) override;
  void on_answer(uint64_t tag, const op::Result& result, const Send& send) override;
  const Places& places() const { return places_; }
  std::vector<std::string> take_keys() { return std::move(keys_); }
  bool is_complete() const { return is_complete_; }

 private:
  void ask(uint32_t partition, const Send& send) const;

  const uint64_t tag_;
  Places places_;
  std::vector<std::string> keys_;
  bool is_complete_ = true;
};

// Tells one of the gutter that all changes of the owner before these places have been purged.
class Marking final : public Dialogue {
 public:
  Marking(uint64_t tag, Places places) : tag_(tag), places_(std::move(places)) {}
  void begin(uint64_t epoch, uint32_t partitions, const Send& send) override;
  void on_answer(uint64_t tag, const op::Result& result, const Send& send) override;

 private:
  const uint64_t tag_;
  const Places places_;
};

// Deletes keys on the owner, or everything.
class Purging final : public Dialogue {
 public:
  // Everything: `keys` are not looked at.
  Purging(std::vector<std::string> keys, bool is_flush) : keys_(std::move(keys)), is_flush_(is_flush) {}
  void begin(uint64_t epoch, uint32_t partitions, const Send& send) override;
  void on_answer(uint64_t tag, const op::Result& result, const Send& send) override;

 private:
  static constexpr size_t kAtOnce = 256;  // deletes that wait in the session's queue
  void send_next(const Send& send);

  const std::vector<std::string> keys_;
  const bool is_flush_;
  size_t sent_ = 0;
};

}  // namespace egret::pool
