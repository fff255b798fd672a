// One backend of a simulation: its partitions and its control, as actors.
//
//   Partition = backend/partition.cc's loop around a SlotPoller
//   Control   = what backend/sessions does to set sessions up
//
// Whose handler executes the ops is the world's choice. Single-threaded.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "network.h"
#include "op/direct_store.h"
#include "rng.h"
#include "rpc/slot_poller.h"

namespace egret::sim {

class Server;

class Partition final : private rpc::DeliveryRelay {
 public:
  Partition(Server& server, uint32_t number, rpc::OpHandler& handler);

  void step();
  // Instead of step(), where a worker of the same process serves the partition (as backend::Partition). poll(): one round;
  // whether it did anything. prepare_sleep() follows a round that did nothing, and says whether the worker may block.
  bool poll();
  bool prepare_sleep();
  // It has a message or a ring to look at.
  bool is_signalled() const;
  bool is_asleep() const;
  // It polls, but the last round found nothing.
  bool is_idle() const { return mailbox_.empty() && empty_rounds_ > 0; }

  struct Message {
    enum class Kind : uint8_t { kAttach, kDetach, kRing, kDeliver };
    Kind kind;
    rpc::LaneBinding lane;
    size_t offset = 0;
    size_t length = 0;
  };
  void post(const Message& message) { mailbox_.push_back(message); }
  // The same for a delivery: there is one for each response slot at most, of the longest.
  void deliver(const Message& message);
  // A frozen partition does nothing, as if its thread did not get a processor.
  void freeze(bool frozen) { frozen_ = frozen; }
  // The process ends: nothing of any session is touched any more.
  void drop_all();
  const rpc::PollerCounters& counters() const { return poller_.counters(); }
  std::string describe() const;

 private:
  // A lane whose client is in this thread.
  struct FlushedLane final : transport::FlushServer, op::DirectStore {
    FlushedLane(Partition& of, rpc::LaneId lane, const rpc::LaneBinding& what, transport::SameProcess& where)
        : partition(of), id(lane), binding(what), same_process(where) {}
    void on_flush() override;
    void on_ring() override;
    op::DirectStore* direct_store() override { return this; }
    bool execute(const op::Op& op, op::Result& result, op::LoanName& lent) override;
    bool has_share() const override;
    void execute_all(std::span<const op::Op> ops, op::ResultTaker& taker) override;
    void begin(std::span<const op::Op> ops);
    op::Result perform(size_t index, op::LoanName& lent);
    bool begin_part(const op::Op& part, uint32_t most, op::PartRoom& room) override;
    void end_part(const op::Op& part, uint32_t length) override;
    Partition& partition;
    const rpc::LaneId id;
    const rpc::LaneBinding binding;
    transport::SameProcess& same_process;
    std::vector<op::Op> together;  // the ops of the execute_all() or execute() under way
    std::vector<rpc::LaneId> lanes;
    std::string room;  // of the part that is being received
    bool is_receiving = false;
  };

  bool read_messages();
  void attach(rpc::LaneBinding lane);
  void detach(uint64_t session_id);
  bool poll_rings();
  bool poll_rings_of(const rpc::LaneBinding& home);
  void report_broken();
  bool park();
  void rest();
  void relay(const rpc::LaneBinding& lane, size_t offset, size_t length, std::span<const transport::Piece>) override;

  Server& server_;
  const uint32_t number_;
  rpc::OpHandler& handler_;
  rpc::SlotPoller poller_;
  std::deque<Message> mailbox_;
  std::vector<rpc::LaneBinding> homes_;
  std::vector<uint64_t> attached_;                             // sessions
  std::map<uint64_t, std::unique_ptr<FlushedLane>> at_flush_;  // by session
  uint32_t empty_rounds_ = 0;
  bool blocked_ = false;
  bool frozen_ = false;
};

// Grants sessions and takes them down, as the backend's control thread does.
class Control {
 public:
  explicit Control(Server& server) : server_(server) {}

  bool step();  // whether there was anything to do
  void close(uint64_t session_id);
  // The process ends: its sockets close.
  void close_all();
  void on_detached(uint64_t session_id);
  void on_broken(uint64_t session_id) { broken_.push_back(session_id); }
  size_t open_sessions() const;
  uint64_t any_session(Rng& rng) const;  // 0: there is none
  uint64_t broken_sessions() const { return broken_total_; }
  transport::ServerEndpoint* endpoint(uint64_t session_id);
  uint64_t nonce(uint64_t session_id) const;   // 0: no such session
  uint64_t worker(uint64_t session_id) const;  // its id, as the client says

 private:
  enum class State : uint8_t { kSilent, kWaiting, kOpen, kClosing };
  struct Session {
    uint64_t id = 0;
    State state = State::kSilent;
    uint64_t worker_id = 0;
    uint32_t window = 0;    // that the client asks for
    uint64_t features = 0;  // that it offers
    uint64_t nonce = 0;
    uint32_t detaching = 0;
    std::unique_ptr<transport::ServerEndpoint> endpoint;
  };
  bool read_control(Session& session);
  void grant_waiting();
  void grant(Session& session);

  Server& server_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<uint64_t> broken_;
  uint64_t broken_total_ = 0;
  uint64_t next_id_ = 1;
};

struct ServerOptions {
  std::string address = {};  // whose connections are accepted (Network::accept)
  wire::RegionLayout layout;
  uint64_t epoch = 1;     // of its process
  uint64_t features = 0;  // of its grants, as far as they are asked for
  uint64_t hash_seed = 77;
  uint32_t item_size_max = 1 << 20;
  uint64_t lane_idle_ns = 30'000;
  bool park_always = false;
  uint64_t torn_limit_ns = 1'000'000'000;
  rpc::PushRules push = {};
  bool is_driven = false;  // workers of the same process serve its partitions
};

class Server {
 public:
  Server(const ServerOptions& given, const base::Clock& used_clock, Network& used_network, Rng& used_rng)
      : options(given), clock(used_clock), network(used_network), rng(used_rng) {}
  ~Server();

  // As many as the layout has lanes.
  void add_partition(std::unique_ptr<rpc::OpHandler> handler);
  // The process ends, as by kill -9. Returns its handlers, for another one that begins with its data.
  std::vector<std::unique_ptr<rpc::OpHandler>> end();
  rpc::PollerCounters counters() const;
  // Its next sessions are those of another process.
  void become_another() { ++processes; }

  const ServerOptions options;
  const base::Clock& clock;
  Network& network;
  Rng& rng;
  uint64_t processes = 0;           // before the present one
  uint64_t direct_ops = 0;          // executed without a slot
  uint64_t together = 0;            // of these, with others
  uint64_t direct_parts = 0;        // received in the store
  uint64_t rings_relayed = 0;       // by homes to other partitions
  uint64_t deliveries_relayed = 0;  // by partitions to homes
  std::vector<std::unique_ptr<rpc::OpHandler>> handlers;
  std::vector<std::unique_ptr<Partition>> partitions;
  Control control{*this};
};

}  // namespace egret::sim
