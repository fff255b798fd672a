// After a backend's restart a thousand proxies connect within a moment. In time of a model the production code of both
// sides' handshakes runs: rpc::ClientSession with its back-off, the frames, the backend's access::Admission and
// access::connection_to_end().
//
//   ClientSession ─ connect ─▶ [the system's backlog: what does not fit is dropped, and asked for again 4.3 s later]
//        ▲                               │
//        └─ rejected, frames ◀── control thread: one after the other, each step at a cost, as backend/sessions does
//                                        │ ▲
//                                        ▼ │ queue pairs, memory
//                                set-up threads: several at once; a part of each step is the device's, which does one at a time
//
// The costs are assumptions (no card was measured); who works beside whom, and the backlog's size, are facts.
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "access/admission.h"
#include "access/newcomers.h"
#include "rpc/client_session.h"
#include "setup/completions.h"
#include "sim_clock.h"
#include "wire/handshake.h"

namespace egret::sim {

namespace {

constexpr uint64_t kUs = 1'000;
constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kWire = 5 * kUs;          // one way
constexpr uint64_t kAskAgain = 4'300 * kMs;  // the connection manager, when nobody has answered
constexpr uint64_t kClientSetUp = 2 * kMs;   // a proxy's queue pair, before its hello; its memories, before it is open
constexpr uint64_t kEndCost = 20 * kUs;  // of the old backend's kernel, which ends its queue pairs one after the other
constexpr uint64_t kRejectCost = 20 * kUs;  // of the control thread
constexpr uint64_t kDoneCost = 10 * kUs;    // of it, to hear that a set-up thread is done
constexpr int kAcceptsAtOnce = 16;          // as in backend/control.cc; the next as in backend/sessions/sessions.cc
constexpr size_t kMostInSetUp = 128;
constexpr wire::RegionLayout kLayout{.lanes = 1, .window = 2, .request_slot_size = 1024, .response_slot_size = 1024};

struct Shape {
  uint32_t hosts = 1000;
  uint32_t sessions_of_each = 1;
  uint64_t control_ns = 200 * kUs;  // of the control thread, for one session: half to accept, half to grant
  uint64_t setup_ns = 0;            // of a set-up thread, likewise
  uint64_t device_percent = 0;      // of that, in which the device works for this session and for no other
  size_t threads = 4;               // for set-up
  size_t backlog = 1024;
  bool clients_know = true;      // of being asked to come back; those of 0.1.0 do not
  uint64_t down_ns = 200 * kMs;  // until somebody listens again
};

class Storm;
Storm* storm = nullptr;  // which connect() reaches; one at a time

// The client's end of one attempt; it lives as long as its session wants it, the model's side by `number`.
class Attempt final : public transport::ClientEndpoint {
 public:
  explicit Attempt(uint64_t own_number) : number(own_number) {}
  ~Attempt() override;
  int control_fd() const override { return -1; }
  base::Status receive_frame(std::span<std::byte> frame, size_t& length) override {
    length = 0;
    if (frames.empty()) return failure.empty() ? base::Status::ok() : base::Status::error(failure);
    length = frames.front().size();
    std::ranges::copy(frames.front(), frame.begin());
    frames.pop_front();
    return base::Status::ok();
  }
  base::Status send_frame(std::span<const std::byte> frame, bool attach) override;
  base::Status map_region(const transport::RegionShape& shape) override {
    requests.resize(shape.request_bytes);
    responses.resize(shape.response_bytes);
    return base::Status::ok();
  }
  const transport::Limits& limits() const override { return limits_; }
  std::byte* request_image() override { return requests.data(); }
  const std::byte* response_image() const override { return responses.data(); }
  void stage_write(uint32_t, size_t, size_t, uint64_t) override {}
  void stage_ringing_write(uint32_t, size_t, size_t, uint64_t) override {}
  void stage_read(uint32_t, size_t, size_t, uint64_t) override {}
  void flush() override {}
  size_t poll(std::span<transport::Event>) override { return 0; }
  void ring(uint32_t) override {}
  int data_fd() const override { return -1; }
  void arm() override {}
  uint32_t come_back_ms() const override { return asked_back_ms; }
  void close() override {}

  const uint64_t number;
  std::deque<std::vector<std::byte>> frames;
  std::string failure;
  uint32_t asked_back_ms = 0;
  std::vector<std::byte> requests, responses;

 private:
  transport::Limits limits_{.read_depth = 16};
};

// Everything there is, and what will happen when.
class Storm final : private rpc::SessionObserver {
 public:
  explicit Storm(const Shape& shape) : shape_(shape) { storm = this; }
  ~Storm() {
    clients_.clear();
    storm = nullptr;
  }

  struct Result {
    uint64_t open = 0;
    uint64_t last_ns = 0;        // when the last was open, from the moment on that the backend listened
    uint64_t half_ns = 0;        // when half of them were
    uint32_t most_attempts = 0;  // of one client, from that moment on
    uint64_t asked_back = 0, dropped = 0, signs = 0;
    uint64_t longest_turn_ns = 0;  // of the control thread
    size_t most_in_setup = 0;      // that waited for a set-up thread
  };
  Result run(uint64_t limit_ns) {
    const uint32_t count = shape_.hosts * shape_.sessions_of_each;
    for (uint32_t number = 0; number < count; ++number) start_client(number);
    at(shape_.down_ns, [this] { listens_ = true; });
    while (!moments_.empty() && result_.open < count && clock.now_ns() < shape_.down_ns + limit_ns) {
      auto next = moments_.top();
      moments_.pop();
      clock.manual.advance_ns(next.at_ns - clock.manual.now_ns());
      next.happen();
    }
    for (const auto& client : clients_) {
      result_.signs += client->session->counters().signs.failures.get() - client->signs_before;
      result_.most_attempts = std::max(result_.most_attempts, client->attempts);
    }
    return result_;
  }

  std::unique_ptr<transport::ClientEndpoint> connect(const std::string& address, bool came_back) {
    const auto client = static_cast<uint32_t>(std::stoul(address));
    auto attempt = std::make_unique<Attempt>(++last_attempt_);
    attempts_[attempt->number] = {.end = attempt.get(), .client = client, .came_back = came_back};
    if (listens_) ++clients_[client]->attempts;
    at_later(kWire, [this, number = attempt->number] { arrive(number); });
    return attempt;
  }
  void forget(uint64_t number) {
    const auto known = attempts_.find(number);
    if (known == attempts_.end()) return;
    known->second.end = nullptr;
    at_later(kWire, [this, number] { newcomers_.erase(number); });
  }
  // It waits until the connection is accepted, and the client knows.
  void say(uint64_t number, std::vector<std::byte> frame) { attempts_[number].hello = std::move(frame); }

  SimClock clock;

 private:
  struct Client {
    std::unique_ptr<rpc::ClientSession> session;
    uint32_t attempts = 0;
    uint64_t signs_before = 0;
  };
  struct Pending {
    Attempt* end = nullptr;  // null: the client has given it up
    uint32_t client = 0;
    bool came_back = false;
    std::vector<std::byte> hello{};
  };
  struct Moment {
    uint64_t at_ns, order;
    std::function<void()> happen;
    bool operator<(const Moment& other) const { return std::tie(at_ns, order) > std::tie(other.at_ns, other.order); }
  };

  void at(uint64_t when_ns, std::function<void()> happen) { moments_.push({when_ns, ++order_, std::move(happen)}); }
  void at_later(uint64_t ns, std::function<void()> happen) { at(clock.now_ns() + ns, std::move(happen)); }

  // --- clients
  void start_client(uint32_t number);
  void tick(uint32_t number);
  base::Status on_session_connecting(rpc::ClientSession&) override { return base::Status::ok(); }
  base::Status on_session_open(rpc::ClientSession&) override {
    const uint64_t now_ns = clock.now_ns() - shape_.down_ns;
    if (++result_.open * 2 == clients_.size()) result_.half_ns = now_ns;
    result_.last_ns = now_ns;
    return base::Status::ok();
  }
  void on_session_lost(rpc::ClientSession&, const std::string&, bool) override {}
  void tell(uint64_t number, uint64_t after_ns, std::function<void(Attempt&)> change) {
    at_later(after_ns, [this, number, change = std::move(change)] {
      Pending& pending = attempts_[number];
      if (pending.end == nullptr) return;
      change(*pending.end);
      clients_[pending.client]->session->on_control_ready();
    });
  }

  // --- the connection manager
  void arrive(uint64_t number) {
    if (!listens_) {
      return tell(number, kWire, [](Attempt& end) { end.failure = "nobody listens"; });
    }
    if (backlog_.size() >= shape_.backlog) {
      ++result_.dropped;
      at_later(kAskAgain, [this, number] {
        if (attempts_[number].end != nullptr) arrive(number);
      });
      return;
    }
    backlog_.push_back(number);
    wake_control();
  }

  // --- the control thread: a turn takes what its steps cost; what it does takes effect as each step ends.
  void wake_control() {
    if (std::exchange(is_awake_, true)) return;
    at_later(0, [this] { turn(); });
  }
  void turn();
  void accept_some(uint64_t& now_ns);
  void limit_newcomers(uint64_t now_ns);
  void take(uint64_t number, std::span<const std::byte> frame, uint64_t& now_ns);
  size_t under_way() const { return newcomers_.size(); }

  // --- the set-up threads
  struct Work {
    uint64_t number;
    bool is_memory = false;  // else its queue pair
  };
  struct Done {
    Work work;
    uint64_t interval_ns;
  };
  void give(const Work& work);
  void begin_work();
  void take(const Done& done, uint64_t& now_ns);

  const Shape shape_;
  Result result_;
  std::priority_queue<Moment> moments_;
  uint64_t order_ = 0;
  std::vector<std::unique_ptr<Client>> clients_;
  std::map<uint64_t, Pending> attempts_;
  uint64_t last_attempt_ = 0;
  bool listens_ = false;
  bool is_awake_ = false;
  std::deque<uint64_t> backlog_;
  struct Said {
    uint64_t number;
    std::vector<std::byte> frame;
  };
  std::deque<Said> frames_;
  struct Newcomer {
    std::string peer;
    bool is_silent = true;     // its memory is not being made yet
    bool waits_for_us = true;  // nor is its queue pair
  };
  std::map<uint64_t, Newcomer> newcomers_;  // by attempt
  access::Admission admission_;
  std::deque<Work> queue_;
  std::deque<Done> done_;
  size_t at_work_ = 0;
  backend::Completions completions_;
  uint64_t device_free_ns_ = 0;
};

Attempt::~Attempt() {
  if (storm != nullptr) storm->forget(number);
}

base::Status Attempt::send_frame(std::span<const std::byte> frame, bool attach) {
  if (!attach) storm->say(number, {frame.begin(), frame.end()});
  return base::Status::ok();
}

void Storm::start_client(uint32_t number) {
  rpc::SessionOptions options;
  options.address = std::to_string(number);
  options.worker_id = number + 1;
  const auto connect_here =
      [](const std::string& address,
         const transport::ConnectOptions& given) -> base::Expected<std::unique_ptr<transport::ClientEndpoint>> {
    return storm->connect(address, given.came_back);
  };
  auto client = std::make_unique<Client>();
  client->session =
      std::make_unique<rpc::ClientSession>(options, clock, static_cast<rpc::SessionObserver&>(*this), connect_here);
  clients_.push_back(std::move(client));
  const uint64_t noticed_ns = number * kEndCost;
  at(noticed_ns, [this, number] {
    clients_[number]->session->start();
    tick(number);
  });
  // What an attempt in vain before the backend listened says is true.
  at(shape_.down_ns, [this, number] {
    Client& one = *clients_[number];
    one.signs_before = one.session->counters().signs.failures.get();
  });
}

void Storm::tick(uint32_t number) {
  rpc::ClientSession& session = *clients_[number]->session;
  session.tick();
  if (!session.is_open()) at_later(rpc::ClientSession::kTickNs, [this, number] { tick(number); });
}

void Storm::turn() {
  const bool may_accept = !backlog_.empty() && queue_.size() < kMostInSetUp;
  if (!may_accept && frames_.empty() && done_.empty()) {
    is_awake_ = false;
    return;
  }
  const uint64_t begun_ns = clock.now_ns();
  uint64_t now_ns = begun_ns;
  if (may_accept) accept_some(now_ns);
  for (size_t left = frames_.size(); left > 0; --left) {
    const Said said = std::move(frames_.front());
    frames_.pop_front();
    take(said.number, said.frame, now_ns);
  }
  for (size_t left = done_.size(); left > 0; --left) {
    const Done done = done_.front();
    done_.pop_front();
    take(done, now_ns);
  }
  result_.longest_turn_ns = std::max(result_.longest_turn_ns, now_ns - begun_ns);
  at(now_ns, [this] { turn(); });  // busy until then
}

void Storm::accept_some(uint64_t& now_ns) {
  for (int accepted = 0; accepted < kAcceptsAtOnce && !backlog_.empty();) {
    const uint64_t number = backlog_.front();
    backlog_.pop_front();
    Pending& pending = attempts_[number];
    if (pending.end == nullptr) continue;  // it has given up, and the manager knows
    const uint32_t pause_ms = shape_.clients_know ? admission_.come_back_ms(now_ns, under_way(), pending.came_back) : 0;
    if (pause_ms > 0) {
      now_ns += kRejectCost;
      ++result_.asked_back;
      tell(number, now_ns - clock.now_ns() + kWire, [pause_ms](Attempt& end) {
        end.asked_back_ms = pause_ms;
        end.failure = "asked to come back";
      });
      continue;
    }
    ++accepted;
    now_ns += shape_.control_ns / 2;
    at(now_ns, [this, number] { give({number}); });
    newcomers_[number] = {std::to_string(pending.client / shape_.sessions_of_each)};
    limit_newcomers(now_ns);
  }
}

void Storm::limit_newcomers(uint64_t now_ns) {
  std::vector<access::Newcomer> silent;
  for (const auto& [id, newcomer] : newcomers_) {
    if (newcomer.is_silent) silent.push_back({id, newcomer.peer, newcomer.waits_for_us});
  }
  const auto one_too_many = access::connection_to_end(silent);
  if (!one_too_many) return;
  newcomers_.erase(*one_too_many);
  tell(*one_too_many, now_ns - clock.now_ns() + kWire, [](Attempt& end) { end.failure = "one too many"; });
}

void Storm::take(uint64_t number, std::span<const std::byte> frame, uint64_t& now_ns) {
  wire::Hello hello;
  if (!newcomers_.contains(number)) return;
  REQUIRE(decode(frame, hello));
  CHECK(((hello.features & wire::kComeBack) != 0));
  now_ns += shape_.control_ns / 2;
  newcomers_[number].is_silent = false;
  at(now_ns, [this, number] { give({number, true}); });
}

void Storm::take(const Done& done, uint64_t& now_ns) {
  const uint64_t number = done.work.number;
  now_ns += kDoneCost;
  if (!newcomers_.contains(number)) return;
  const access::StepCost cost{.control_ns = shape_.control_ns / 2 + kDoneCost, .setup_ns = done.interval_ns};
  newcomers_[number].waits_for_us = false;
  if (!done.work.is_memory) return admission_.accepted(cost);
  admission_.granted(cost);
  newcomers_.erase(number);
  const wire::Grant granted{.session_id = number, .nonce = 1, .epoch = 1, .hash_seed = 1, .layout = kLayout};
  tell(number, now_ns - clock.now_ns() + kWire + kClientSetUp,
       [frame = encode(granted)](Attempt& end) { end.frames.push_back(frame); });
}

// --- set-up

void Storm::give(const Work& work) {
  queue_.push_back(work);
  result_.most_in_setup = std::max(result_.most_in_setup, queue_.size());
  begin_work();
}

void Storm::begin_work() {
  while (at_work_ < shape_.threads && !queue_.empty()) {
    const Work work = queue_.front();
    queue_.pop_front();
    if (!newcomers_.contains(work.number)) continue;  // withdrawn
    ++at_work_;
    const uint64_t begun_ns = clock.now_ns();
    const uint64_t of_device_ns = shape_.setup_ns / 2 * shape_.device_percent / 100;
    at_later(shape_.setup_ns / 2 - of_device_ns, [this, work, begun_ns, of_device_ns] {
      device_free_ns_ = std::max(device_free_ns_, clock.now_ns()) + of_device_ns;
      at(device_free_ns_, [this, work, begun_ns] {
        --at_work_;
        done_.push_back({work, completions_.interval_ns(begun_ns, clock.now_ns())});
        // Once its queue pair is accepted the client says hello.
        if (!work.is_memory) {
          at_later(2 * kWire + kClientSetUp, [this, number = work.number] {
            if (newcomers_.contains(number)) frames_.push_back({number, attempts_[number].hello});
            wake_control();
          });
        }
        wake_control();
        begin_work();
      });
    });
  }
}

Storm::Result after_restart(const Shape& shape) {
  Storm world(shape);
  const Storm::Result result = world.run(60 * kSecond);
  const uint64_t sessions = uint64_t{shape.hosts} * shape.sessions_of_each;
  MESSAGE(sessions, " sessions, ", shape.control_ns / kUs, " us of the control thread and ", shape.setup_ns / kUs,
          " us of ", shape.threads, " set-up threads each, ", shape.device_percent,
          " % of that the device's: open after ", result.last_ns / kMs, " ms, half of them after ",
          result.half_ns / kMs, " ms, attempts at most ", result.most_attempts, ", asked to come back ",
          result.asked_back, ", dropped ", result.dropped, ", longest turn ", result.longest_turn_ns / kUs,
          " us, waited for set-up at most ", result.most_in_setup);
  CHECK(result.open == sessions);
  return result;
}

constexpr uint64_t kSetUp = 2800 * kUs;  // with 200 us of the control thread: 3 ms a session

}  // namespace

TEST_CASE(
    "a thousand hosts are back within 5 s and two attempts, however much of the 3 ms a session the device takes") {
  for (const uint64_t device_percent : {0, 100}) {
    for (const uint64_t down_ms : {50, 200, 1000, 3000}) {
      CAPTURE(down_ms);
      const auto result =
          after_restart({.setup_ns = kSetUp, .device_percent = device_percent, .down_ns = down_ms * kMs});
      CHECK(result.last_ns < 5 * kSecond);
      CHECK(result.most_attempts <= 2);
      CHECK(result.dropped == 0);
      CHECK(result.signs == 0);
    }
  }
}

TEST_CASE("four workers of each of a thousand hosts are back within 5 s and two attempts, at 3 ms for each session") {
  for (const uint64_t device_percent : {0, 30}) {
    for (const uint64_t down_ms : {200, 1000, 3000}) {
      CAPTURE(down_ms);
      const auto result = after_restart(
          {.sessions_of_each = 4, .setup_ns = kSetUp, .device_percent = device_percent, .down_ns = down_ms * kMs});
      CHECK(result.last_ns < 5 * kSecond);
      CHECK(result.most_attempts <= 2);
      CHECK(result.signs == 0);
    }
  }
}

TEST_CASE(
    "where one thread must do all of it, or the device does one at a time, they take as long as that: nobody is lost") {
  for (const Shape& shape : {Shape{.sessions_of_each = 4, .control_ns = 3000 * kUs, .setup_ns = 2 * kUs},
                             Shape{.sessions_of_each = 4, .setup_ns = kSetUp, .device_percent = 100},
                             Shape{.sessions_of_each = 4, .setup_ns = kSetUp, .threads = 2}}) {
    const auto result = after_restart(shape);
    CHECK(result.most_attempts <= 2);
    CHECK(result.signs == 0);
    CHECK(result.longest_turn_ns < 60 * kMs);
  }
}

TEST_CASE("those who are back are served while others come: half are open in half of the time, and no turn is long") {
  const auto result = after_restart({.sessions_of_each = 4, .setup_ns = kSetUp});
  CHECK(result.half_ns < result.last_ns * 6 / 10);
  CHECK(result.longest_turn_ns < 10 * kMs);
  CHECK(result.most_attempts <= 2);
}

TEST_CASE("a small backlog, as another system may have it, costs pauses and loses nobody") {
  const auto result = after_restart({.hosts = 300, .setup_ns = 800 * kUs, .backlog = 4});
  CHECK(result.dropped > 0);
}

TEST_CASE("clients that cannot be asked to come back, as those of 0.1.0, are all back, too") {
  const auto result = after_restart({.setup_ns = kSetUp, .clients_know = false});
  CHECK(result.asked_back == 0);
}

}  // namespace egret::sim
