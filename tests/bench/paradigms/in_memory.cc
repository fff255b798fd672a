#include "in_memory.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <doctest/doctest.h>

#include "bench/sampler.h"

namespace egret::bench_paradigms {

namespace {

uint64_t version_of(std::string_view value) {
  uint64_t version = 0;
  if (value.size() >= 16) std::memcpy(&version, value.data() + 8, sizeof version);
  return version;
}

}  // namespace

InMemory::InMemory(std::string_view id, const Plan& plan, uint32_t keys, uint64_t seed)
    : plan_(plan),
      keys_(keys, plan.key_bytes),
      world_(seed),
      rng_(seed * 7919),
      paradigm_(find_paradigm(id)),
      state_(keys) {
  REQUIRE(paradigm_ != nullptr);
  plan_.keys = &keys_;
  if (plan_.clock == nullptr) plan_.clock = &clock_;
}

InMemory::~InMemory() {
  clients_.clear();
  servers_.clear();
}

// Made at the first use, so that a test can change the world's capabilities before.
void InMemory::prepare() {
  if (!fabrics_.empty()) return;
  std::vector<Node*> nodes;
  for (NodeId id = 0; id < plan_.nodes(); ++id) {
    fabrics_.push_back(world_.make_fabric(id));
    fabrics_.back()->want_huge_pages(plan_.tuning.has_huge_pages);
    if (plan_.is_server(id)) {
      servers_.push_back(make_server(*paradigm_, plan_, id, *fabrics_.back()));
      nodes.push_back(servers_.back().get());
    } else {
      clients_.push_back(make_client(*paradigm_, plan_, id, *fabrics_.back()));
      nodes.push_back(clients_.back().get());
    }
    const base::Status done = nodes.back()->prepare();
    REQUIRE_MESSAGE(done.is_ok(), done.message());
  }
  for (NodeId to = 0; to < plan_.nodes(); ++to) {
    for (NodeId from = 0; from < plan_.nodes(); ++from) {
      if (from == to) continue;
      const base::Status done = nodes[to]->join(from, fabrics_[from]->address(), nodes[from]->notice(to));
      REQUIRE_MESSAGE(done.is_ok(), done.message());
    }
  }
  for (Node* node : nodes) {
    const base::Status done = node->load();
    REQUIRE_MESSAGE(done.is_ok(), done.message());
  }
}

void InMemory::step() {
  clock_.advance_ns(1000);
  if (serve_every_ > 0) {
    world_.advance();
    if (++steps_ % serve_every_ == 0 && !is_stopped_) {
      for (const auto& server : servers_) server->serve();
    }
  } else if (rng_.below(3) > 0) {
    world_.advance();
  } else if (!is_stopped_) {
    servers_[rng_.below(plan_.servers)]->serve();
  }
  if (interfere_) interfere_();
}

void InMemory::begin(uint32_t client, const Mix& mix, Seen& seen) {
  Op op;
  op.key_number = rng_.below(keys_.count());
  op.key = keys_.key(op.key_number);
  Key& key = state_[op.key_number];
  if (mix.next_only) {
    op.kind = OpKind::kNext;
  } else if (rng_.unit() >= mix.gets) {
    if (key.writes_under_way > 0) return;  // whose value is the last would not be known
    op.kind = rng_.unit() < mix.erases ? OpKind::kErase : OpKind::kPut;
  }
  std::string value(plan_.value_bytes, '\0');
  Going going{op.kind, op.key_number, 0, key.acknowledged, key.may_miss};
  if (op.kind == OpKind::kPut) {
    going.version = ++next_version_;
    bench::write_value(value.data(), value.size(), op.key_number, going.version);
    op.value = value;
  }
  op.ticket = next_ticket_;
  if (!clients_[client]->begin(op)) return;
  ++next_ticket_;
  ++begun_;
  if (op.kind == OpKind::kPut || op.kind == OpKind::kErase) ++key.writes_under_way;
  if (op.kind == OpKind::kErase) {
    key.may_miss = true;
    for (auto& [ticket, other] : going_) other.may_miss = other.may_miss || other.key == op.key_number;
  }
  going_[op.ticket] = going;
  (void)seen;
}

void InMemory::wrong(Seen& seen, const std::string& what) {
  if (++seen.wrong == 1) seen.first_wrong = what;
}

void InMemory::judge(const Going& op, const Result& result, Seen& seen) {
  Key& key = state_[op.key];
  const std::string text(keys_.key(op.key));
  const bool is_write = op.kind == OpKind::kPut || op.kind == OpKind::kErase;
  if (is_write) --key.writes_under_way;
  switch (result.outcome) {
    case Outcome::kHit: {
      ++seen.hits;
      if (op.kind == OpKind::kNext) {
        uint64_t number = 0;
        if (result.value.size() == sizeof number) std::memcpy(&number, result.value.data(), sizeof number);
        seen.lowest = std::min(seen.lowest, number);
        seen.highest = std::max(seen.highest, number);
        if (!numbers_.insert(number).second) wrong(seen, "number " + std::to_string(number) + " given twice");
        break;
      }
      if (result.value.size() != plan_.value_bytes) return wrong(seen, "a value of another size for " + text);
      const auto verdict = bench::judge_value(result.value.data(), result.value.size(), op.key);
      if (verdict != bench::ValueVerdict::kGood) return wrong(seen, "a torn or another key's value for " + text);
      if (plan_.value_bytes >= 16 && version_of(result.value) < op.floor) wrong(seen, "an old value for " + text);
      break;
    }
    case Outcome::kMiss:
      ++seen.misses;
      if (!op.may_miss) wrong(seen, "a miss of " + text + ", which was there all the time");
      break;
    case Outcome::kDone:
      ++seen.done;
      if (op.kind == OpKind::kPut) {
        if (paradigm_->stores_puts) key.acknowledged = op.version;
        key.may_miss = false;
      }
      break;
    case Outcome::kFull:
      ++seen.full;
      break;
    case Outcome::kLost:
      ++seen.lost;
      break;
    case Outcome::kFailed:
      ++seen.failed;
      break;
  }
}

void InMemory::take(uint32_t client, Seen& seen) {
  std::array<Result, 8> results;
  const uint32_t found = clients_[client]->poll(results);
  for (uint32_t i = 0; i < found; ++i) {
    const auto at = going_.find(results[i].ticket);
    if (at == going_.end()) {
      wrong(seen, "an answer that nobody waits for");
      continue;
    }
    ++seen.ops;
    if (single_ != nullptr) *single_ = {results[i].outcome, std::string(results[i].value)};
    const Going op = at->second;
    going_.erase(at);
    judge(op, results[i], seen);
  }
}

void InMemory::let_in() {
  if (running_ == nullptr) return;
  for (uint32_t steps = rng_.below(8); steps > 0; --steps) {
    world_.advance();
    take(rng_.below(plan_.clients), *running_);
  }
}

Seen InMemory::run(const Mix& mix) {
  prepare();
  Seen seen;
  running_ = &seen;
  const VerbCounts clients = counts_of_clients();
  const VerbCounts servers = counts_of_servers();
  begun_ = 0;
  for (uint64_t steps = 0; seen.ops < mix.ops && steps < mix.steps; ++steps) {
    const uint32_t client = rng_.below(plan_.clients);
    if (begun_ < mix.ops) begin(client, mix, seen);
    step();
    take(client, seen);
  }
  running_ = nullptr;
  seen.clients = counts_of_clients() - clients;
  seen.servers = counts_of_servers() - servers;
  return seen;
}

InMemory::Answer InMemory::one(uint32_t client, OpKind kind, uint32_t key_number, uint64_t version) {
  prepare();
  Answer answer;
  Op op;
  op.kind = kind;
  op.key_number = key_number;
  op.key = keys_.key(key_number);
  std::string value(plan_.value_bytes, '\0');
  bench::write_value(value.data(), value.size(), key_number, version);
  if (kind == OpKind::kPut) op.value = value;
  op.ticket = next_ticket_++;
  REQUIRE(clients_[client]->begin(op));
  ++state_[key_number].writes_under_way;
  if (kind == OpKind::kErase) state_[key_number].may_miss = true;
  if (kind == OpKind::kGet) --state_[key_number].writes_under_way;
  going_[op.ticket] = {kind, key_number, version, 0, true};
  Seen seen;
  single_ = &answer;
  for (uint64_t steps = 0; seen.ops == 0 && steps < 1'000'000; ++steps) {
    step();
    take(client, seen);
  }
  single_ = nullptr;
  return answer;
}

Trouble InMemory::trouble() const {
  Trouble sum;
  for (const auto& client : clients_) sum += client->trouble();
  for (const auto& server : servers_) sum += server->trouble();
  return sum;
}

VerbCounts InMemory::counts_of_clients() const {
  VerbCounts sum;
  for (NodeId id = plan_.servers; id < fabrics_.size(); ++id) sum += fabrics_[id]->counts();
  return sum;
}

VerbCounts InMemory::counts_of_servers() const {
  VerbCounts sum;
  for (NodeId id = 0; id < plan_.servers && id < fabrics_.size(); ++id) sum += fabrics_[id]->counts();
  return sum;
}

}  // namespace egret::bench_paradigms
