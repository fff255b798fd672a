// The two kinds of host, over channels that are there already (connection.h makes them): the listening one, which leads, and a
// connecting one, which follows. What the Session of the face is made of; tests give them channels without a device.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench_paradigms/session/bodies.h"
#include "bench_paradigms/session/channel.h"
#include "bench_paradigms/session/crew.h"

namespace egret::bench_paradigms {

// What a host has of its own.
struct Surroundings {
  MakeFabric make_fabric;
  std::function<const Paradigm*(std::string_view id)> find = find_paradigm;
  const std::atomic<bool>* stop = nullptr;
};

// One other host, its channel and when something went over it.
class Neighbour {
 public:
  explicit Neighbour(std::unique_ptr<Channel> channel);

  base::Status send(FrameType type, std::string_view body);
  // The next frame that is more than a sign of life. Says kAlive, when nothing else was said for a while; fails when
  // nothing has come for too long.
  base::Expected<std::optional<Frame>> poll();
  void trust() { channel_->trust(); }

 private:
  std::unique_ptr<Channel> channel_;
  uint64_t sent_ns_, heard_ns_;
};

// Waits for a frame, which must be of that type. Fails after `patience_s`, or when `stop` is set.
base::Expected<Frame> wait_for(Neighbour& from, FrameType type, double patience_s, const std::atomic<bool>* stop);

class Leader final : public Session {
 public:
  // `hosts` and `capabilities`: of all; the others are welcomed with them.
  static base::Expected<std::unique_ptr<Leader>> make(std::vector<Neighbour> others, std::vector<HostInfo> hosts,
                                                      const Capabilities& capabilities, Surroundings surroundings);

  const std::vector<HostInfo>& hosts() const override { return hosts_; }
  const Capabilities& capabilities() const override { return capabilities_; }
  base::Expected<RunResult> run(const Order& order, NodeWork& work) override;
  // Tells it to all, and waits until they have it.
  base::Status end(const std::string& report);

 private:
  struct Stepping;  // a step that is under way
  Leader(std::vector<Neighbour> others, std::vector<HostInfo> hosts, const Capabilities& capabilities,
         Surroundings surroundings);
  base::Status tell_all(FrameType type, std::string_view body);
  base::Expected<RunResult> take_steps(Crew& crew, const Plan& plan);
  // All nodes of all hosts, in their order.
  base::Expected<std::vector<Brought>> step(Crew& crew, const Plan& plan, StepOrder order);
  base::Status listen_to(size_t other, Stepping& stepping);
  base::Status open_phases(Crew& crew, Stepping& stepping);

  std::vector<Neighbour> others_;
  std::vector<HostInfo> hosts_;
  Capabilities capabilities_;
  Surroundings surroundings_;
};

// Does what the listening host says until it has the report.
class Follower {
 public:
  Follower(Neighbour leader, Surroundings surroundings, NodeWork& work);
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  base::Expected<std::string> run();

 private:
  struct Run;  // from an order to its kEnd
  base::Status take(const Frame& frame);
  base::Status begin(const Frame& frame);
  base::Status begin_step(const Frame& frame);
  base::Status report();  // what own nodes have come to since

  Neighbour leader_;
  Surroundings surroundings_;
  NodeWork& work_;
  Welcome welcome_;
  std::unique_ptr<Run> run_;
};

// The nodes of that host; 0 listens.
std::vector<NodeId> nodes_of(const Plan& plan, uint32_t host, uint32_t connecting_hosts);
// Whether these are what each node must have brought for all others.
base::Status check_prepared(const std::vector<Brought>& brought, const Plan& plan);

}  // namespace egret::bench_paradigms
