// The bodies of frames: what travels in them, written and checked field by field.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench_paradigms/session/session.h"

namespace egret::bench_paradigms {

// kHello
struct Hello {
  std::string token;
  std::string build;  // own_build(): nodes of another build do not understand each other
  HostInfo host;
  Capabilities capabilities;
};
// kWelcome
struct Welcome {
  uint32_t host = 0;  // the connecting one's number, from 1
  std::vector<HostInfo> hosts;
  Capabilities capabilities;  // of all devices
};

// What all of a host's nodes do next, together.
enum class Step : uint8_t {
  kPrepare,  // brings: address, then a notice for each node (to itself: empty)
  kJoin,     // takes: what all nodes have brought by kPrepare
  kLoad,
  kWork,  // brings: what NodeWork::run has returned
  kEnd,   // the nodes go
};
inline constexpr uint8_t kLastStep = static_cast<uint8_t>(Step::kEnd);

// What a node's step has come to.
struct Brought {
  NodeId node = 0;
  std::string error;  // empty: it is done
  NodeAddress address;
  std::vector<std::string> notices;  // kPrepare: by node
  std::string figures;               // kWork
};
// kStep. Of kJoin: of all nodes, in their order.
struct StepOrder {
  Step step = Step::kPrepare;
  std::vector<Brought> nodes;
};
// kDone
struct StepDone {
  Step step = Step::kPrepare;
  std::vector<Brought> nodes;  // own ones
};

// What both sides must have alike: the version and the ids that there are.
std::string own_build();

std::string to_body(const Hello& hello);
std::string to_body(const Welcome& welcome);
std::string to_body(const Order& order);
std::string to_body(const StepOrder& order);
std::string to_body(const StepDone& done);

base::Expected<Hello> read_hello(std::string_view body);
base::Expected<Welcome> read_welcome(std::string_view body);
base::Expected<Order> read_order(std::string_view body);  // its plan is within what any host can do
base::Expected<StepOrder> read_step(std::string_view body);
base::Expected<StepDone> read_done(std::string_view body);

// Fails where a host would try what cannot be.
base::Status check_order(const Order& order);

// Fields of Tuning that travel. A test compares it with how many there are.
uint32_t tuning_fields();

// What all devices can do together; `device` names both where they differ.
Capabilities merge(const Capabilities& one, const Capabilities& other);

}  // namespace egret::bench_paradigms
