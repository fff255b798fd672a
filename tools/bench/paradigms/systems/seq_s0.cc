// seq-s0: Spec-S0, a sequencer whose requests and answers are headers only (paper 002, section 4.2.1, figures 7 and 8,
// table 3).
//
//   client                                              server core
//     RECV; UD SEND, 0 bytes, immediate: upper half ──▶ RECV of 0 bytes ─▶ number = counter++
//           that it guesses                              guessed right: SEND, 0 bytes, immediate: lower half
//     ◀─────────────────────────────────────────────     else: SEND of 8 bytes, which is the next guess
//
// The cores share one counter; a client asks any core, each in turn. --batch-add N: a core adds for up to N requests of
// a pass at once. Answers carry no request's number: any answer of a core answers the oldest request to it. Relies on
// nothing being lost (a request without an answer is `lost` after 100 ms) and on datagrams of a pair in order (loss).
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <span>

#include "base/clock.h"
#include "bench_paradigms/notice.h"
#include "bench_paradigms/process_shared.h"
#include "bench_paradigms/systems/systems.h"

namespace egret::bench_paradigms {

using base::Status;

namespace {

constexpr uint64_t kPatienceNs = 100'000'000;
constexpr uint32_t kPlace = 64;  // of a RECV: the device's 40 bytes and a number
constexpr uint32_t kNumber = sizeof(uint64_t);

// It begins where the upper half is about to change: every run sees guesses that are wrong.
struct Counter {
  alignas(64) std::atomic<uint64_t> next{0xffffff00};
};

// A UD pair, its queues and its RECVs: of a server core, or of a client thread for one core.
struct Station {
  std::unique_ptr<Memory> places;
  std::unique_ptr<Queue> sent, received;
  std::unique_ptr<Pair> pair;  // goes before its queues
  uint32_t unsignalled = 0;

  Status make(Fabric& fabric, uint32_t receives, uint32_t sends) {
    auto made = fabric.make_memory(size_t{receives} * kPlace, kNoRights);
    if (!made) return made.status();
    places = std::move(made.value());
    for (auto* const queue : {&sent, &received}) {
      auto one = fabric.make_queue(std::max(receives, sends));
      if (!one) return one.status();
      *queue = std::move(one.value());
    }
    auto one = fabric.make_pair({.type = PairType::kUd,
                                 .send_queue = sent.get(),
                                 .receive_queue = received.get(),
                                 .sends = sends,
                                 .receives = receives});
    if (!one) return one.status();
    pair = std::move(one.value());
    return Status::ok();
  }
  bool receive(uint32_t place) {
    const Receive work{places->data() + size_t{place} * kPlace, kPlace, places.get(), place};
    return pair->post_receives({&work, 1});
  }
  // By one doorbell. One signalled of `every`: its completion frees those before it.
  bool send(std::span<Work> works, uint32_t every) {
    std::array<Completion, 8> done;
    sent->poll(done);
    for (Work& work : works) {
      work.verb = Verb::kSend;
      work.is_signalled = ++unsignalled >= every;
      if (work.is_signalled) unsignalled = 0;
    }
    return pair->post(works);
  }
};

uint32_t signals(const Plan& plan, uint32_t sends) {
  return std::max(1u, std::min(plan.tuning.signal_every, sends / 2));
}

class Server final : public ServerNode {
 public:
  Server(const Plan& plan, Fabric& fabric)
      : plan_(plan),
        fabric_(fabric),
        counter_(shared_by_servers<Counter>(plan, [] { return std::make_shared<Counter>(); })),
        depth_(plan.clients * plan.window),
        ways_(plan.clients) {}

  Status prepare() override { return station_.make(fabric_, depth_, sends()); }
  std::string notice(NodeId to) override {
    return plan_.is_server(to) ? std::string() : to_notice(station_.pair->number());
  }
  Status join(NodeId from, const NodeAddress& address, std::string_view notice) override {
    if (plan_.is_server(from)) return Status::ok();
    Peer& peer = ways_[from - plan_.servers];
    if (!read_notice(notice, peer.pair)) return Status::error(kStrangeNotice);
    auto way = fabric_.make_way(address);
    if (!way) return way.status();
    peer.way = std::move(way.value());
    if (from != plan_.nodes() - 1) return Status::ok();
    if (Status done = station_.pair->join(address, 0); !done.is_ok()) return done;
    for (uint32_t place = 0; place < depth_; ++place) {
      if (!station_.receive(place)) return Status::error("cannot post a RECV");
    }
    return Status::ok();
  }
  bool serve() override {
    std::array<Completion, kMostAnswers> requests;
    const uint32_t count = station_.received->poll(requests);
    uint64_t number = 0;
    uint32_t owned = 0;
    for (uint32_t i = 0; i < count; ++i) {
      if (owned == 0) {
        owned = std::min(count - i, std::max(plan_.tuning.batch_add, 1u));
        number = counter_->next.fetch_add(owned, std::memory_order_relaxed);
      }
      --owned;
      answer(requests[i], number++);
      if (collected_ == std::clamp(plan_.tuning.doorbell, 1u, kMostAnswers)) flush();
    }
    flush();
    return count > 0;
  }

 private:
  struct Peer {
    std::unique_ptr<Way> way;
    uint32_t pair = 0;
  };
  static constexpr uint32_t kMostAnswers = 32;  // of a pass
  uint32_t sends() const { return 2 * depth_ + 2; }

  // --doorbell: one for so many answers of a pass, at most.
  void flush() {
    if (collected_ > 0) station_.send(std::span(answers_).first(collected_), signals(plan_, sends()));
    collected_ = 0;
  }
  void answer(const Completion& request, uint64_t number) {
    station_.receive(static_cast<uint32_t>(request.tag));
    const auto peer =
        std::find_if(ways_.begin(), ways_.end(), [&](const Peer& each) { return each.pair == request.from_pair; });
    if (peer == ways_.end() || !request.has_immediate) return;  // nobody of this run
    Work work;
    work.way = peer->way.get();
    work.to_pair = peer->pair;
    numbers_[collected_] = number;
    if (request.immediate == number >> 32) {
      work.has_immediate = true;
      work.immediate = static_cast<uint32_t>(number);
    } else {
      work.is_inline = true;
      work.bytes = kNumber;
      work.local = reinterpret_cast<std::byte*>(&numbers_[collected_]);
    }
    answers_[collected_++] = work;
  }

  const Plan& plan_;
  Fabric& fabric_;
  std::shared_ptr<Counter> counter_;
  uint32_t depth_;
  Station station_;
  std::vector<Peer> ways_;                        // by client
  std::array<Work, kMostAnswers> answers_;        // that wait for a doorbell
  std::array<uint64_t, kMostAnswers> numbers_{};  // of these
  uint32_t collected_ = 0;
};

class Client final : public ClientNode {
 public:
  Client(const Plan& plan, NodeId self, Fabric& fabric)
      : plan_(plan),
        fabric_(fabric),
        clock_(plan.clock != nullptr ? *plan.clock : host_clock_),
        turn_(self),
        lanes_(plan.servers) {}

  Status prepare() override {
    for (Lane& lane : lanes_) {
      if (Status done = lane.station.make(fabric_, plan_.window, sends()); !done.is_ok()) return done;
      lane.waiting.reserve(plan_.window);
    }
    numbers_.resize(plan_.window);
    return Status::ok();
  }
  // Each core answers any of a client's pairs: the first lane's number names the client at core 0, and so on.
  std::string notice(NodeId to) override {
    return plan_.is_server(to) ? to_notice(lanes_[to].station.pair->number()) : std::string();
  }
  Status join(NodeId from, const NodeAddress& address, std::string_view notice) override {
    if (!plan_.is_server(from)) return Status::ok();
    Lane& lane = lanes_[from];
    if (!read_notice(notice, lane.server_pair)) return Status::error(kStrangeNotice);
    auto way = fabric_.make_way(address);
    if (!way) return way.status();
    lane.way = std::move(way.value());
    return lane.station.pair->join(address, lane.server_pair);
  }
  bool begin(const Op& op) override {
    if (op.kind != OpKind::kNext || under_way_ == plan_.window) return false;
    Lane& lane = lanes_[turn_++ % plan_.servers];
    // The RECV comes first. One that a lost answer has left stands for it.
    if (lane.receives <= lane.waiting.size()) {
      if (!lane.station.receive(lane.next_place)) return false;
      lane.next_place = (lane.next_place + 1) % plan_.window;
      ++lane.receives;
    }
    Work work;
    work.way = lane.way.get();
    work.to_pair = lane.server_pair;
    work.has_immediate = true;
    work.immediate = guess_;
    if (!lane.station.send({&work, 1}, signals(plan_, sends()))) return false;
    lane.waiting.push_back({op.ticket, clock_.now_ns() + kPatienceNs, guess_});
    ++under_way_;
    return true;
  }
  uint32_t poll(std::span<Result> out) override {
    uint32_t found = 0;
    for (Lane& lane : lanes_) {
      std::array<Completion, 16> answers;
      const size_t most = std::min({answers.size(), out.size() - found, numbers_.size() - found});
      const uint32_t count = lane.station.received->poll(std::span(answers).first(most));
      for (uint32_t i = 0; i < count; ++i) {
        --lane.receives;
        if (lane.waiting.empty()) continue;
        out[found] = answered(lane, answers[i], numbers_[found]);
        ++found;
      }
      if (count == 0 && found < out.size() && !lane.waiting.empty() && clock_.now_ns() > lane.waiting.front().due_ns) {
        out[found++] = {take(lane), Outcome::kLost, {}};
        ++trouble_.retries;
      }
    }
    return found;
  }
  Trouble trouble() const override { return trouble_; }

 private:
  struct Waiting {
    uint64_t ticket;
    uint64_t due_ns;
    uint32_t guess;
  };
  struct Lane {
    Station station;
    std::unique_ptr<Way> way;
    uint32_t server_pair = 0;
    uint32_t receives = 0;  // posted
    uint32_t next_place = 0;
    std::vector<Waiting> waiting;  // the oldest first
  };
  uint32_t sends() const { return 2 * plan_.window + 2; }

  uint64_t take(Lane& lane) {
    const uint64_t ticket = lane.waiting.front().ticket;
    lane.waiting.erase(lane.waiting.begin());
    --under_way_;
    return ticket;
  }
  Result answered(Lane& lane, const Completion& answer, uint64_t& number) {
    const std::byte* const came = lane.station.places->data() + size_t{answer.tag} * kPlace + kGrhBytes;
    if (answer.has_immediate) {
      // What this request has guessed: another core's answer may have changed the guess since.
      number = uint64_t{lane.waiting.front().guess} << 32 | answer.immediate;
    } else {
      std::memcpy(&number, came, sizeof number);
      guess_ = static_cast<uint32_t>(number >> 32);
    }
    return {take(lane), Outcome::kHit, {reinterpret_cast<const char*>(&number), sizeof number}};
  }

  const Plan& plan_;
  Fabric& fabric_;
  base::SystemClock host_clock_;
  const base::Clock& clock_;
  NodeId turn_;
  uint32_t guess_ = 0;  // of the upper half
  uint32_t under_way_ = 0;
  std::vector<Lane> lanes_;        // by server
  std::vector<uint64_t> numbers_;  // that results point to
  Trouble trouble_;
};

}  // namespace

std::unique_ptr<ServerNode> make_seq_s0_server(const Plan& plan, NodeId /*self*/, Fabric& fabric) {
  return std::make_unique<Server>(plan, fabric);
}
std::unique_ptr<ClientNode> make_seq_s0_client(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<Client>(plan, self, fabric);
}

}  // namespace egret::bench_paradigms
