// A large get returns one complete version, however often the value is overwritten meanwhile, and calls its owner
// exactly once.
#include "rpc/large/large_get.h"

#include <map>

#include <doctest/doctest.h>

#include "scenarios.h"
#include "seeds.h"

namespace egret::sim {

namespace {

using op::Op;
using op::OpCode;
using op::Result;
using op::ResultCode;

uint32_t length_of(uint64_t version) {
  return 1500 + static_cast<uint32_t>(version * 2654435761U % 9000);
}

// A partition with one ever-changing value for every key, and one pinned version per lane.
class ChangingValues final : public ModelHandler {
 public:
  ChangingValues(World& world, uint32_t partition, uint32_t change_percent)
      : ModelHandler(world.model, partition, [&world] { world.preempt(); }),
        world_(world),
        change_percent_(change_percent) {}

  void lane_dropped(rpc::LaneId lane) override {
    pins_.erase(lane);
    ModelHandler::lane_dropped(lane);
  }
  uint64_t pins() const { return pins_made_; }

 protected:
  Result answer(const Op& op, rpc::LaneId lane) override {
    if (op.key.starts_with('k')) return ModelHandler::answer(op, lane);
    uint64_t& current = versions_.try_emplace(std::string(op.key), 1).first->second;
    if (world_.rng.percent(change_percent_)) ++current;
    if (op.code == OpCode::kGet) {
      if (op.options & op::kPin) {
        pins_[lane] = {std::string(op.key), current};
        ++pins_made_;
      }
      return part_of(current, 0, length_of(current));
    }
    const auto pin = pins_.find(lane);
    const bool pinned =
        (op.options & op::kPin) && pin != pins_.end() && pin->second == std::pair(std::string(op.key), op.version);
    if (!pinned && op.version != current) {
      Result changed;
      changed.code = ResultCode::kChanged;
      return changed;
    }
    return part_of(op.version, op.offset, op.length);
  }

 private:
  Result part_of(uint64_t version, uint32_t offset, uint32_t length) {
    value_ = pattern(version, length_of(version));
    Result part;
    part.code = ResultCode::kHit;
    part.version = part.cas = version;
    part.total_length = static_cast<uint32_t>(value_.size());
    part.value = std::string_view(value_).substr(offset, length);
    return part;
  }

  World& world_;
  const uint32_t change_percent_;
  std::map<std::string, uint64_t> versions_;
  std::map<rpc::LaneId, std::pair<std::string, uint64_t>> pins_;
  uint64_t pins_made_ = 0;
  std::string value_;
};

// Starts large gets one after the other, as the proxy does: a get, and when its answer is partial, a LargeGet.
class Reader final : public rpc::Waiter, public rpc::LargeGetOwner, public rpc::CreditWaiter {
 public:
  Reader(World& world, SimClient& client, uint32_t number, uint32_t gets, bool destroy_at_once)
      : world_(world),
        client_(client),
        key_("large" + std::to_string(number)),
        left_(gets),
        destroy_at_once_(destroy_at_once) {}

  bool is_done() const { return left_ == 0 && !busy_; }
  void turn() {
    rpc::ClientSession& session = client_.session();
    if (busy_ || left_ == 0 || waiting_ || !session.is_open()) return;
    finished_.reset();
    if (left_ % 3 == 0) {
      busy_ = true;
      large_ = std::make_unique<rpc::LargeGet>(session, get(), *this);
      large_->start_over();
    } else if (session.lanes().of(get().hash).append(get(), this)) {
      busy_ = true;
    } else {
      waiting_ = true;
      session.credit().wait(this);
    }
  }
  uint64_t restarts = 0, lost = 0;

 private:
  Op get() const {
    Op op;
    op.code = OpCode::kGet;
    op.key = key_;
    op.options = op::kWantCas;
    op.hash = client_.session().lanes().hash(key_);
    return op;
  }
  void on_credit() override { waiting_ = false; }
  void on_result(const Result& result) override {
    if (result.code == ResultCode::kHit && result.is_partial()) {
      large_ = std::make_unique<rpc::LargeGet>(client_.session(), get(), *this);
      return large_->start(result);
    }
    over(result);
  }
  bool on_length(rpc::LargeGet&, uint32_t) override { return true; }
  void on_large_get(rpc::LargeGet& get) override {
    if (&get != large_.get()) return world_.model.fail("a large get told its owner twice");
    restarts += get.restarts();
    over(get.result());
    get.take_hold().release();
    finished_ = std::move(large_);
    if (destroy_at_once_) finished_.reset();
  }
  void over(const Result& result) {
    busy_ = false;
    --left_;
    if (op::has_no_answer(result.code)) {
      ++lost;
      return;
    }
    std::string value(result.value);
    for (const std::string_view piece : result.further) value += piece;
    if (result.code != ResultCode::kHit || value != pattern(result.version, length_of(result.version)) ||
        result.cas != result.version) {
      // A whole value that came at once has no version of its own; its bytes tell.
      if (result.version == 0 && value == pattern(result.cas, length_of(result.cas))) return;
      world_.model.fail(std::string("a large get ended with ") + op::to_string(result.code) + ", version " +
                        std::to_string(result.version) + ", " + std::to_string(value.size()) + " bytes");
    }
  }

  World& world_;
  SimClient& client_;
  const std::string key_;
  uint32_t left_;
  const bool destroy_at_once_;
  bool busy_ = false, waiting_ = false;
  std::unique_ptr<rpc::LargeGet> large_, finished_;
};

struct Outcome {
  uint64_t restarts = 0, pins = 0, lost = 0;
};

// A world with `readers` for each client beside the usual traffic.
std::string read_large(uint64_t seed, Scenario scenario, uint32_t change_percent, uint32_t readers,
                       const std::function<void(World&, Rng&)>& disturb, Outcome& sum) {
  std::vector<ChangingValues*> handlers;
  // Readers are there until the world has told them that it goes.
  std::vector<std::unique_ptr<Reader>> all;
  World world(seed, scenario, [&](World& of, uint32_t partition) {
    auto made = std::make_unique<ChangingValues>(of, partition, change_percent);
    handlers.push_back(made.get());
    return made;
  });
  for (const auto& client : world.clients) {
    std::vector<Reader*> own;
    for (uint32_t i = 0; i < readers; ++i) {
      all.push_back(std::make_unique<Reader>(world, *client, i, 6, seed % 2 == 0));
      own.push_back(all.back().get());
    }
    client->on_turn = [own] {
      for (Reader* reader : own) reader->turn();
    };
  }
  Rng rng(seed + 1);
  const auto done = [&] { return std::ranges::all_of(all, [](const auto& reader) { return reader->is_done(); }); };
  for (int i = 0; i < 3 && disturb; ++i) {
    world.run_until(
        [&, end = world.clock.manual.now_ns() + rng.below(50'000)] { return world.clock.manual.now_ns() > end; });
    disturb(world, rng);
  }
  const auto wake_all = [&] {
    for (const auto& client : world.clients) {
      if (!done() && client->is_asleep()) client->submit_more(1);  // a reader begins in a turn: give it one
    }
    return done();
  };
  if (!world.run_until(wake_all, 1'000'000) && !world.model.has_failed()) world.model.fail("large gets without end");
  world.run();
  for (const auto& reader : all) sum.restarts += reader->restarts, sum.lost += reader->lost;
  for (const ChangingValues* handler : handlers) sum.pins += handler->pins();
  world.tear_down();
  all.clear();
  return outcome(world);
}

Scenario large_scenario(uint64_t seed) {
  Scenario scenario = any_scenario(seed);
  scenario.network.flavour = seed % 3 == 0 ? Flavour::kShm : Flavour::kVerbs;
  scenario.is_one_process = seed % 5 == 4;
  scenario.model.large_percent = 0;
  scenario.clients_sleep_always = seed % 2 == 0;
  scenario.ops_per_client = 20;
  scenario.session.backoff_min_ns = 5'000;
  scenario.tick_ns = 10'000;
  return scenario;
}

}  // namespace

TEST_CASE("a large get yields one version whole, overwritten or not") {
  Outcome sum;
  for_each_seed(300,
                [&](uint64_t seed) { return read_large(seed, large_scenario(seed), pick(seed, 5) * 10, 2, {}, sum); });
  CHECK(is_met(sum.restarts));
}

TEST_CASE("a value that changes all the time is pinned, and the get ends") {
  Outcome sum;
  for_each_seed(200, [&](uint64_t seed) { return read_large(seed, large_scenario(seed), 100, 1, {}, sum); });
  CHECK(is_met(sum.pins));
}

TEST_CASE("several large gets share a lane's one pin and all end") {
  Outcome sum;
  for_each_seed(200, [&](uint64_t seed) {
    Scenario scenario = large_scenario(seed);
    scenario.layout.lanes = 1;
    scenario.layout.window = 2;  // each get needs many round trips, in which others could take the pin
    scenario.layout.response_slot_size = 1024;
    scenario.session.fetch.min_fetch = scenario.session.fetch.max_fetch = 64;  // and two READs for each of them
    return read_large(seed, scenario, 100, 4, {}, sum);
  });
  CHECK(is_met(sum.pins));
}

TEST_CASE("a large get whose session is lost tells its owner exactly once") {
  Outcome sum;
  for_each_seed(300, [&](uint64_t seed) {
    Scenario scenario = large_scenario(seed);
    scenario.model.may_be_lost = scenario.time_heals = true;
    return read_large(
        seed, scenario, 20, 3,
        [](World& world, Rng& rng) {
          SimClient& victim = *world.clients[rng.below(static_cast<uint32_t>(world.clients.size()))];
          if (victim.session().is_open()) world.control.close(victim.session().grant().session_id);
        },
        sum);
  });
  CHECK(is_met(sum.lost));
}

}  // namespace egret::sim
