// The members that a name service knows: one entry dns+rdma:NAME:PORT or srv+rdma:NAME (or tcp), resolved again and again.
//
//   timer ─▶ round: ask A and AAAA, or SRV and then the addresses of the targets ─▶ name_members.h ─▶ members(), problem()
//     ▲                                                                                                      │
//     └────────────── after the TTL, 5 to 30 s, jittered; after a failure: 5, 10, 20, 30 s ◀──────────────┘
//
// A member of an SRV record is named HOST:PORT after the record's target, so that no key moves when its address changes.
// The addresses of targets are resolved here, by the same name servers: they come with the SRV answer mostly, and the
// transport would take a thread for each name.
//
// Thread: the event loop's. Errors: what a round could not learn stays as it was, and problem() says why and since when.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "discovery/name_entry.h"
#include "discovery/name_members.h"
#include "discovery/resolver.h"
#include "discovery/source.h"
#include "events/event.h"

namespace egret::discovery {

struct NameServiceOptions {
  ResolverOptions resolver;
  // Between two rounds.
  std::chrono::milliseconds least{5000};
  std::chrono::milliseconds most{30000};
  uint64_t (*random)() = &base::random_u64;
};

class NameService final : public Source, private Resolver::Asker {
 public:
  NameService(events::EventLoop& loop, NameEntry entry, const NameServiceOptions& options, SourceObserver& observer);

  // Begins the first round, or another one now.
  void start();
  // The same name with another weight, or other options, for the next round; start() is to follow.
  void set(NameEntry entry, const NameServiceOptions& options);

  std::span<const pool::Member> members() const override { return members_; }
  std::string name() const override { return entry_.text; }
  const std::string& problem() const override { return problem_; }
  std::optional<std::chrono::system_clock::time_point> learned_at() const override { return learned_at_; }

 private:
  // One resolution of the entry.
  struct Round {
    std::array<Reply, 2> replies;  // of kAddresses: to A and AAAA
    std::vector<Target> targets;   // of kServices
    size_t next_target = 0;        // the first that was not asked for
    size_t open_questions = 0;
    size_t failures = 0;  // questions for targets to which no server has given an answer
    bool is_truncated = false;
    size_t unusable = 0;           // records
    size_t unresolved = 0;         // targets
    std::string first_unresolved;  // for people
    uint32_t ttl = UINT32_MAX;
  };

  void begin_round();
  void ask(const std::string& name, RecordType type, uint64_t tag);
  void on_reply(uint64_t tag, const Reply& reply) override;
  void take_services(const Reply& reply);
  void take_target(size_t index, bool is_v6, const Reply& reply);
  void leave_unresolved(const Target& target, const std::string& why);
  void ask_targets();
  void finish_addresses();
  void finish_services();
  void finish_round(std::vector<pool::Member> members, std::string failure);
  void fail_round(const std::string& failure);
  std::string address_of(const std::string& name) const;
  std::string problem_text(const std::string& failure) const;
  std::chrono::milliseconds pause_after_round() const;

  NameEntry entry_;
  NameServiceOptions options_;
  SourceObserver& observer_;
  std::vector<pool::Member> members_;
  std::string problem_;
  std::optional<std::chrono::system_clock::time_point> learned_at_;
  uint32_t failed_rounds_ = 0;  // in a row
  std::chrono::system_clock::time_point failing_since_;
  Round round_;
  events::Event next_round_;
  Resolver resolver_;
};

}  // namespace egret::discovery
