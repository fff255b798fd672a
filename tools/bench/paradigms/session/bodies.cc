#include "bench_paradigms/session/bodies.h"

#include <algorithm>

#include "bench_paradigms/session/frame.h"

namespace egret::bench_paradigms {

using base::Expected;
using base::Status;

namespace {

// What no plan goes beyond, and no host can be made to try.
constexpr uint32_t kMostServers = 256;
constexpr uint32_t kMostClients = 4096;
constexpr uint32_t kMostWindow = 65'536;
constexpr uint32_t kMostKeyBytes = 4096;
constexpr uint32_t kMostValueBytes = 1 << 20;
constexpr uint32_t kMostKeys = 1 << 28;
constexpr uint64_t kMostBytesOfKeys = uint64_t{1} << 34;
constexpr uint32_t kMostHosts = 4096;

Status nonsense() {
  return Status::error("the other side sends nonsense");
}

// Each field of a struct once, for writing, for reading and for counting.
template <typename T, typename Visit>
void visit_tuning(T& tuning, const Visit& visit) {
  visit(tuning.as_paper);
  visit(tuning.is_synchronous);
  visit(tuning.doorbell);
  visit(tuning.ud_pairs);
  visit(tuning.signal_every);
  visit(tuning.is_inline);
  visit(tuning.is_header_only);
  visit(tuning.pad);
  visit(tuning.has_huge_pages);
  visit(tuning.queue_pairs);
  visit(tuning.prefetches);
  visit(tuning.batch_add);
  visit(tuning.atomic_stride);
  visit(tuning.fetch_bytes);
  visit(tuning.hybrid_vain);
  visit(tuning.ways);
  visit(tuning.hops);
  visit(tuning.load);
  visit(tuning.index_load);
  visit(tuning.filter_bits);
  visit(tuning.spare_entries);
  visit(tuning.places_at_server);
  visit(tuning.cache_entries);
  visit(tuning.locality);
  visit(tuning.reuse_delay_ns);
  visit(tuning.has_own_node);
  visit(tuning.polls_watermark);
  visit(tuning.checks);
  visit(tuning.caches_places);
  visit(tuning.raw_reads);
}

template <typename T, typename Visit>
void visit_plan(T& plan, const Visit& visit) {
  visit(plan.servers);
  visit(plan.clients);
  visit(plan.window);
  visit(plan.key_bytes);
  visit(plan.value_bytes);
  visit(plan.seed);
  visit_tuning(plan.tuning, visit);
}

template <typename T, typename Visit>
void visit_capabilities(T& can, const Visit& visit) {
  visit(can.has_atomics);
  visit(can.has_backward_answers);
  visit(can.has_uc);
  visit(can.has_ud);
  visit(can.is_emulated);
  visit(can.is_in_order);
  visit(can.inline_bytes);
  visit(can.mtu);
  visit(can.packet_head);
  visit(can.read_depth);
  visit(can.device);
}

struct Write {
  FieldWriter& to;
  template <typename T>
  void operator()(const T& field) const {
    if constexpr (std::is_same_v<T, std::string>) {
      to.put_text(field);
    } else {
      to.put(field);
    }
  }
};

struct Read {
  FieldReader& from;
  template <typename T>
  void operator()(T& field) const {
    if constexpr (std::is_same_v<T, std::string>) {
      field = from.get_text();
    } else if constexpr (std::is_same_v<T, bool>) {
      field = from.get_bool();
    } else {
      field = from.get<T>();
    }
  }
};

void put_host(FieldWriter& to, const HostInfo& host) {
  to.put_text(host.device).put(host.processors);
}
HostInfo get_host(FieldReader& from) {
  HostInfo host;
  host.device = from.get_text();
  host.processors = from.get<uint32_t>();
  return host;
}

void put_nodes(FieldWriter& to, const std::vector<Brought>& nodes) {
  to.put<uint64_t>(nodes.size());
  for (const Brought& each : nodes) {
    to.put(each.node).put_text(each.error);
    to.put_text({reinterpret_cast<const char*>(each.address.gid.data()), each.address.gid.size()});
    to.put(each.address.node).put(each.address.lid);
    to.put<uint64_t>(each.notices.size());
    for (const std::string& notice : each.notices) to.put_text(notice);
    to.put_text(each.figures);
  }
}

Brought get_node(FieldReader& from) {
  Brought each;
  each.node = from.get<uint32_t>();
  each.error = from.get_text();
  const std::string_view gid = from.get_text();
  if (gid.size() == each.address.gid.size()) std::memcpy(each.address.gid.data(), gid.data(), gid.size());
  each.address.node = from.get<uint32_t>();
  each.address.lid = from.get<uint16_t>();
  const auto notices = from.get<uint64_t>();
  for (uint64_t i = 0; i < notices && from.is_good(); ++i) each.notices.emplace_back(from.get_text());
  each.figures = from.get_text();
  return each;
}

std::vector<Brought> get_nodes(FieldReader& from) {
  std::vector<Brought> nodes;
  const auto count = from.get<uint64_t>();
  for (uint64_t i = 0; i < count && from.is_good(); ++i) nodes.push_back(get_node(from));
  return nodes;
}

template <typename T>
Expected<T> read_nodes(std::string_view body) {
  FieldReader from(body);
  T read;
  const auto step = from.get<uint8_t>();
  read.nodes = get_nodes(from);
  if (!from.is_done() || step > kLastStep) return nonsense();
  read.step = static_cast<Step>(step);
  return read;
}

template <typename T>
std::string nodes_body(const T& what) {
  FieldWriter to;
  to.put(static_cast<uint8_t>(what.step));
  put_nodes(to, what.nodes);
  return to.take();
}

}  // namespace

std::string own_build() {
  std::string build = "1 " + std::to_string(sizeof(Plan)) + " " + std::to_string(tuning_fields());
  for (const Paradigm& each : paradigms()) build += " " + std::string(each.id);
  return build;
}

uint32_t tuning_fields() {
  Tuning tuning;
  uint32_t count = 0;
  visit_tuning(tuning, [&count](const auto& /*field*/) { ++count; });
  return count;
}

std::string to_body(const Hello& hello) {
  FieldWriter to;
  to.put_text(hello.token).put_text(hello.build);
  put_host(to, hello.host);
  visit_capabilities(hello.capabilities, Write{to});
  return to.take();
}

Expected<Hello> read_hello(std::string_view body) {
  FieldReader from(body);
  Hello hello;
  hello.token = from.get_text();
  hello.build = from.get_text();
  hello.host = get_host(from);
  visit_capabilities(hello.capabilities, Read{from});
  if (!from.is_done()) return nonsense();
  return hello;
}

std::string to_body(const Welcome& welcome) {
  FieldWriter to;
  to.put(welcome.host).put<uint64_t>(welcome.hosts.size());
  for (const HostInfo& each : welcome.hosts) put_host(to, each);
  visit_capabilities(welcome.capabilities, Write{to});
  return to.take();
}

Expected<Welcome> read_welcome(std::string_view body) {
  FieldReader from(body);
  Welcome welcome;
  welcome.host = from.get<uint32_t>();
  const auto hosts = from.get<uint64_t>();
  if (hosts > kMostHosts) return nonsense();
  for (uint64_t i = 0; i < hosts && from.is_good(); ++i) welcome.hosts.push_back(get_host(from));
  visit_capabilities(welcome.capabilities, Read{from});
  if (!from.is_done() || welcome.host == 0 || welcome.host >= hosts) return nonsense();
  return welcome;
}

std::string to_body(const Order& order) {
  FieldWriter to;
  to.put_text(order.paradigm);
  visit_plan(order.plan, Write{to});
  to.put(order.keys).put_text(order.workload);
  return to.take();
}

Expected<Order> read_order(std::string_view body) {
  FieldReader from(body);
  Order order;
  order.paradigm = from.get_text();
  visit_plan(order.plan, Read{from});
  order.keys = from.get<uint32_t>();
  order.workload = from.get_text();
  if (!from.is_done() || !check_order(order)) return nonsense();
  return order;
}

Status check_order(const Order& order) {
  const Plan& plan = order.plan;
  const auto is_within = [](uint64_t value, uint64_t most) { return value >= 1 && value <= most; };
  if (!is_within(plan.servers, kMostServers)) return Status::error("too many server cores, or none");
  if (!is_within(plan.clients, kMostClients)) return Status::error("too many clients, or none");
  if (!is_within(plan.tuning.queue_pairs, kMostClients) || plan.clients * plan.tuning.queue_pairs > kMostClients)
    return Status::error("too many queue pairs, or none");
  if (!is_within(plan.window, kMostWindow)) return Status::error("a window that is too large, or 0");
  if (!is_within(plan.value_bytes, kMostValueBytes)) return Status::error("values that are too large, or empty");
  if (!is_within(order.keys, kMostKeys)) return Status::error("too many keys, or none");
  if (plan.key_bytes > kMostKeyBytes || plan.key_bytes < bench::Keyspace::min_key_size(order.keys)) {
    return Status::error("keys of " + std::to_string(plan.key_bytes) + " bytes are too long, or too short for " +
                         std::to_string(order.keys));
  }
  if (uint64_t{plan.key_bytes} * order.keys > kMostBytesOfKeys) return Status::error("keys of more than 16 GiB in all");
  return Status::ok();
}

std::string to_body(const StepOrder& order) {
  return nodes_body(order);
}
std::string to_body(const StepDone& done) {
  return nodes_body(done);
}
Expected<StepOrder> read_step(std::string_view body) {
  return read_nodes<StepOrder>(body);
}
Expected<StepDone> read_done(std::string_view body) {
  return read_nodes<StepDone>(body);
}

Capabilities merge(const Capabilities& one, const Capabilities& other) {
  Capabilities both;
  both.has_atomics = one.has_atomics && other.has_atomics;
  both.has_backward_answers = one.has_backward_answers || other.has_backward_answers;
  both.has_uc = one.has_uc && other.has_uc;
  both.has_ud = one.has_ud && other.has_ud;
  both.is_emulated = one.is_emulated || other.is_emulated;
  both.is_in_order = one.is_in_order && other.is_in_order;
  both.inline_bytes = std::min(one.inline_bytes, other.inline_bytes);
  both.mtu = std::min(one.mtu, other.mtu);
  both.packet_head = std::max(one.packet_head, other.packet_head);
  both.read_depth = std::min(one.read_depth, other.read_depth);
  both.device = one.device == other.device ? one.device : one.device + " or " + other.device;
  return both;
}

}  // namespace egret::bench_paradigms
