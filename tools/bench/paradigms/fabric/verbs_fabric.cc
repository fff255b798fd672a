#include "bench_paradigms/fabric/verbs_fabric.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "bench_paradigms/fabric/pages.h"
#include "bench_paradigms/fabric/verbs_pair.h"
#include "bench_verbs/pairs/by_hand.h"

namespace egret::bench_paradigms {

using base::Expected;
using base::Status;

namespace {

ibv_qp_type qp_type_of(PairType type) {
  switch (type) {
    case PairType::kUc:
      return IBV_QPT_UC;
    case PairType::kUd:
      return IBV_QPT_UD;
    case PairType::kRc:
      break;
  }
  return IBV_QPT_RC;
}

const char* name_of(PairType type) {
  switch (type) {
    case PairType::kUc:
      return "UC";
    case PairType::kUd:
      return "UD";
    case PairType::kRc:
      break;
  }
  return "RC";
}

// What a pair of that type lets the peer do, if the memory does, too. UC has neither READs nor atomics.
unsigned access_of(PairType type, const Capabilities& all) {
  unsigned access = IBV_ACCESS_REMOTE_WRITE;
  if (type != PairType::kRc) return access;
  access |= IBV_ACCESS_REMOTE_READ;
  return all.has_atomics ? access | IBV_ACCESS_REMOTE_ATOMIC : access;
}

int access_of(uint8_t rights) {
  unsigned access = IBV_ACCESS_LOCAL_WRITE;
  if ((rights & kRemoteRead) != 0) access |= IBV_ACCESS_REMOTE_READ;
  if ((rights & kRemoteWrite) != 0) access |= IBV_ACCESS_REMOTE_WRITE;
  if ((rights & kRemoteAtomic) != 0) access |= IBV_ACCESS_REMOTE_ATOMIC;
  return static_cast<int>(access);
}

class VerbsMemory final : public Memory {
 public:
  VerbsMemory(size_t bytes, bool wants_huge) : pages_(bytes, wants_huge) {}
  ~VerbsMemory() override {
    if (registration_ != nullptr) ibv_dereg_mr(registration_);
  }
  Status create(ibv_pd* domain, uint8_t rights) {
    const std::string bytes = std::to_string(pages_.size()) + " bytes";
    if (pages_.data() == nullptr) return Status::system_error("cannot get " + bytes + " of memory", errno);
    registration_ = ibv_reg_mr(domain, pages_.data(), pages_.size(), access_of(rights));
    if (registration_ == nullptr) {
      return Status::system_error("cannot register " + bytes + " (is the limit of locked memory, ulimit -l, too low?)",
                                  errno);
    }
    data_ = pages_.data();
    size_ = pages_.size();
    local_key_ = registration_->lkey;
    remote_key_ = registration_->rkey;
    return Status::ok();
  }

 private:
  Pages pages_;  // goes after its registration
  ibv_mr* registration_ = nullptr;
};

class VerbsFabric final : public Fabric {
 public:
  VerbsFabric(const Route& route, uint32_t node, const Capabilities& all, bench_verbs::Domain domain)
      : route_(route), all_(all), domain_(std::move(domain)) {
    route_.own.node = node;
  }

  const Capabilities& capabilities() const override { return all_; }
  NodeAddress address() const override { return route_.own; }

  Expected<std::unique_ptr<Memory>> make_memory(size_t bytes, uint8_t rights) override {
    if (bytes == 0) return Status::error("a memory of no bytes");
    auto memory = std::make_unique<VerbsMemory>(bytes, wants_huge_pages_);
    if (Status done = memory->create(domain_.get(), rights); !done) return done;
    return std::unique_ptr<Memory>(std::move(memory));
  }

  Expected<std::unique_ptr<Queue>> make_queue(uint32_t entries) override {
    bench_verbs::Queue handle(ibv_create_cq(route_.device, static_cast<int>(entries), nullptr, nullptr, 0));
    if (handle == nullptr) {
      return Status::system_error("cannot create a completion queue of " + std::to_string(entries) + " entries", errno);
    }
    return std::unique_ptr<Queue>(std::make_unique<VerbsQueue>(std::move(handle)));
  }

  Expected<std::unique_ptr<Pair>> make_pair(const PairSpec& spec) override {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = static_cast<VerbsQueue*>(spec.send_queue)->handle();
    wanted.recv_cq = static_cast<VerbsQueue*>(spec.receive_queue)->handle();
    wanted.qp_type = qp_type_of(spec.type);
    wanted.cap = {.max_send_wr = spec.sends,
                  .max_recv_wr = spec.receives,
                  .max_send_sge = 1,
                  .max_recv_sge = 1,
                  .max_inline_data = all_.inline_bytes};
    const std::string what = std::string("cannot create a queue pair of type ") + name_of(spec.type);
    bench_verbs::Handle handle(ibv_create_qp(domain_.get(), &wanted));
    if (handle == nullptr) return Status::system_error(what, errno);
    if (const int error = bench_verbs::ready_pair(handle.get(), route_.way, access_of(spec.type, all_)); error != 0) {
      return Status::system_error(what, error);
    }
    return std::unique_ptr<Pair>(std::make_unique<VerbsPair>(std::move(handle), spec, route_, all_, counts_));
  }

  Expected<std::unique_ptr<Way>> make_way(const NodeAddress& peer) override {
    ibv_ah_attr way = way_to(route_, peer);
    bench_verbs::Way handle(ibv_create_ah(domain_.get(), &way));
    if (handle == nullptr) return Status::system_error("cannot create an address handle", errno);
    return std::unique_ptr<Way>(std::make_unique<VerbsWay>(std::move(handle)));
  }

 private:
  Route route_;
  const Capabilities all_;
  bench_verbs::Domain domain_;
};

}  // namespace

Expected<Route> find_route(const rdma_cm_id* control) {
  if (const std::string why = bench_verbs::why_not_by_hand(control); !why.empty()) return Status::error(why);
  auto way = bench_verbs::query_way(control);
  if (!way) return way.status();
  Route route;
  route.device = control->verbs;
  route.way = way.value();
  ibv_port_attr port{};
  if (const int error = ibv_query_port(control->verbs, control->port_num, &port); error != 0) {
    return Status::system_error("cannot ask for the device's port", error);
  }
  route.is_infiniband = port.link_layer != IBV_LINK_LAYER_ETHERNET;  // unspecified: a driver from before RoCE
  ibv_gid gid{};
  const int index = route.way.ah_attr.is_global != 0 ? route.way.ah_attr.grh.sgid_index : 0;
  if (ibv_query_gid(control->verbs, control->port_num, index, &gid) != 0) {
    return Status::system_error("cannot ask for the port's address", errno);
  }
  std::memcpy(route.own.gid.data(), gid.raw, sizeof gid.raw);
  route.own.lid = port.lid;
  return route;
}

Expected<std::unique_ptr<Fabric>> make_verbs_fabric(const Route& route, uint32_t node, const Capabilities& all) {
  bench_verbs::Domain domain(ibv_alloc_pd(route.device));
  if (domain == nullptr) return Status::system_error("cannot allocate a protection domain", errno);
  return std::unique_ptr<Fabric>(std::make_unique<VerbsFabric>(route, node, all, std::move(domain)));
}

}  // namespace egret::bench_paradigms
