// Values that are sent in parts: whole and in order, whether parts go by slots or are received in the store, among other ops and
// other such values, some of which are given up half-way.
#include "rpc/large/large_set.h"

#include <algorithm>
#include <array>

#include <doctest/doctest.h>

#include "scenarios.h"
#include "seeds.h"

namespace egret::sim {

namespace {

// Sends values one after the other, as the proxy does for one of its clients.
class Writer final : public rpc::CreditWaiter {
 public:
  Writer(World& world, SimClient& client, uint32_t first_id, uint32_t values)
      : world_(world), client_(client), next_id_(first_id), left_(values) {}

  bool is_done() const { return left_ == 0 && set_ == nullptr; }
  uint64_t in_place = 0;  // times that bytes were received in such room
  void turn() {
    if (waiting_) return;
    if (set_ == nullptr && left_ > 0) begin();
    if (set_ != nullptr) go_on();
  }

 private:
  void begin() {
    do {
      draft_ = world_.model.draw_op(true);
    } while (!record().is_long);
    --left_;
    sent_ = 0;
    rpc::ClientSession& session = client_.session();
    op::Op& op = draft_->op;
    op.hash = session.lanes().hash(draft_->key);
    lane_ = session.lanes().of(op.hash).number();
    world_.model.goes_in_parts(record(), session.grant().session_id, lane_);
    set_ = new rpc::LargeSet(session, op, static_cast<uint32_t>(draft_->value.size()), next_id_++);
    ends_early_ = world_.rng.percent(15);
  }
  void go_on() {
    if (!set_->enter()) {
      set_->wait_for_room();
      return wait();
    }
    while (sent_ < draft_->value.size()) {
      if (ends_early_ && world_.rng.percent(20)) return std::exchange(set_, nullptr)->abandon();
      if (world_.rng.percent(20)) return;  // its client has sent nothing more yet
      if (!send_some()) return wait();
    }
    if (!set_->commit(&record())) return wait();
    world_.model.is_sent(record(), client_.session().grant().session_id, lane_);
    std::exchange(set_, nullptr)->release();
  }
  // Sends some of the bytes that are left: half the time as if they were received in the room that begin_part() gives, if any.
  bool send_some() {
    const auto left = static_cast<uint32_t>(draft_->value.size() - sent_);
    const std::string_view bytes = std::string_view(draft_->value).substr(sent_, world_.rng.between(1, left));
    op::PartRoom room;
    if (world_.rng.percent(50) && set_->begin_part(left, room)) {
      const auto received = std::min(static_cast<uint32_t>(bytes.size()), room.length);
      size_t at = 0;
      for (size_t i = 0; i < room.count; ++i)
        at += bytes.substr(at, received - at).copy(room.pieces[i].data(), room.pieces[i].size());
      const bool is_worth = received >= room.least;
      set_->end_part(room, is_worth ? received : 0);
      in_place += is_worth;
      sent_ += is_worth ? received : 0;
      if (is_worth) return true;
    }
    const size_t taken = set_->send(bytes);
    sent_ += taken;
    return taken == bytes.size();
  }
  void wait() {
    waiting_ = true;
    client_.session().credit().wait(this);
  }
  void on_credit() override { waiting_ = false; }
  OpRecord& record() { return world_.model.record_of(*draft_); }

  World& world_;
  SimClient& client_;
  uint32_t next_id_, left_;
  uint32_t lane_ = 0;
  std::unique_ptr<Model::Draft> draft_;
  rpc::LargeSet* set_ = nullptr;
  size_t sent_ = 0;
  bool waiting_ = false, ends_early_ = false;
};

struct Outcome {
  uint64_t committed = 0, in_place = 0, direct_parts = 0, by_slots = 0, given_up = 0;
};

std::string write_large(uint64_t seed, const Scenario& scenario, Outcome& sum) {
  constexpr uint32_t kWriters = 3, kValues = 4;  // of a client, of a writer
  std::vector<std::unique_ptr<Writer>> all;
  World world(seed, scenario);
  for (const auto& client : world.clients) {
    std::vector<Writer*> own;
    for (uint32_t i = 0; i < kWriters; ++i) {
      all.push_back(std::make_unique<Writer>(world, *client, 1 + i * kValues, kValues));
      own.push_back(all.back().get());
    }
    client->on_turn = [own] {
      for (Writer* writer : own) writer->turn();
    };
  }
  const auto are_done = [&] { return std::ranges::all_of(all, [](const auto& writer) { return writer->is_done(); }); };
  const auto wake_all = [&] {
    for (const auto& client : world.clients) {
      if (!are_done() && client->is_asleep()) client->submit_more(1);  // a writer goes on in a turn: give it one
    }
    return are_done();
  };
  if (!world.run_until(wake_all, 1'000'000) && !world.model.has_failed()) world.model.fail("large sets without end");
  world.run();
  sum.committed += world.model.uploads().committed();
  sum.given_up += all.size() * kValues - world.model.uploads().committed();
  for (const auto& writer : all) sum.in_place += writer->in_place;
  sum.direct_parts += world.server.direct_parts;
  sum.by_slots += world.model.uploads().parts() - world.server.direct_parts;
  world.tear_down();
  for (const auto& client : world.clients) {  // an abort may still wait for credit, and ends so
    client->session().credit().announce();
    client->session().credit().hand_out();
  }
  return outcome(world);
}

Scenario scenario_of_parts(uint64_t seed) {
  Scenario scenario = any_scenario(seed);
  scenario.model.long_percent = 100;
  scenario.item_size_max = 64 << 10;
  scenario.ops_per_client = 20;
  return scenario;
}

}  // namespace

TEST_CASE("a value in parts is whole at its commit, and is executed once") {
  Outcome sum;
  for_each_seed(200, [&](uint64_t seed) {
    Scenario scenario = scenario_of_parts(seed);
    scenario.network.flavour = std::array{Flavour::kVerbs, Flavour::kShm, Flavour::kTcp}[pick(seed, 3)];
    return write_large(seed, scenario, sum);
  });
  CHECK(is_met(sum.in_place));
  CHECK(is_met(sum.committed));
  CHECK(is_met(sum.given_up));
}

TEST_CASE("one process: the same where parts are received in the store, or go by slots, in turn") {
  Outcome sum;
  for_each_seed(300, [&](uint64_t seed) {
    Scenario scenario = scenario_of_parts(seed);
    scenario.is_one_process = true;
    return write_large(seed, scenario, sum);
  });
  CHECK(is_met(sum.committed));
  CHECK(is_met(sum.given_up));
  CHECK(is_met(sum.direct_parts));
  CHECK(is_met(sum.by_slots));
}

}  // namespace egret::sim
