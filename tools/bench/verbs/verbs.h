// libibverbs and librdmacm by RAII, as far as the measurement needs them: connected queue pairs, registered memory. The
// daemons' transport is not used: what is measured here is what that has to live with.
//
// Connecting is synchronous and cold. Errors are one sentence. A Connection belongs to one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "base/status.h"
#include "bench/client/address.h"

namespace egret::bench_verbs {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* handle) const {
    Free(handle);
  }
};
using CmId = std::unique_ptr<rdma_cm_id, Freed<rdma_destroy_id>>;
using Domain = std::unique_ptr<ibv_pd, Freed<ibv_dealloc_pd>>;
using Queue = std::unique_ptr<ibv_cq, Freed<ibv_destroy_cq>>;
using Handle = std::unique_ptr<ibv_qp, Freed<ibv_destroy_qp>>;
using Way = std::unique_ptr<ibv_ah, Freed<ibv_destroy_ah>>;

// What the first private data of a connection say, both ways; the rest is told over the control connection.
struct Greeting {
  static constexpr uint32_t kMagic = 0x56425445;  // "ETBV"
  enum class Role : uint8_t {
    kControl = 1,
    kData = 2,
    kParadigms = 3
  };  // kParadigms: control of `egret-bench paradigms`
  uint32_t magic = kMagic;
  uint8_t version = 2;
  Role role = Role::kControl;
  uint8_t read_depth = 0;  // connecting: READs it can have under way; accepting: READs it may have
  uint8_t reserved = 0;
  uint32_t client = 0;  // kData: the number that the control connection was given
  uint32_t index = 0;   // kData: of this queue pair
};

// Fails with one clear line when this host has no RDMA device.
base::Status check_device();

// Page-aligned memory, registered. Deregistered before it is unmapped; by then no verb may use it.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();
  base::Status create(ibv_pd* domain, size_t bytes, int access);
  std::byte* data() const { return data_; }
  uint32_t local_key() const { return registration_->lkey; }
  uint32_t remote_key() const { return registration_->rkey; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  ibv_mr* registration_ = nullptr;
};

struct QueueSizes {
  uint32_t sends = 0;
  uint32_t receives = 0;
};

// A queue pair with a completion queue of its own. The protection domain is the caller's and outlives it.
class Connection {
 public:
  Connection(CmId id, ibv_pd* domain) : id_(std::move(id)), domain_(domain) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  base::Status create(const QueueSizes& sizes);
  base::Status connect(Greeting greeting);                         // the connecting side, after create
  base::Status accept(Greeting greeting, uint32_t peer_can_read);  // the listening side, after create
  rdma_cm_id* id() const { return id_.get(); }
  ibv_qp* pair() const { return id_->qp; }
  ibv_cq* queue() const { return queue_.get(); }
  const Greeting& answer() const { return answer_; }  // what accept told, after connect
  uint32_t inline_bytes() const { return inline_bytes_; }
  uint32_t read_depth() const { return read_depth_; }
  // Whether the other side has ended it.
  bool is_gone() const;

 private:
  CmId id_;
  ibv_pd* domain_;
  Queue queue_;
  Greeting answer_;
  uint32_t inline_bytes_ = 0;
  uint32_t read_depth_ = 1;
};

// An id that knows its device and the way to `address`.
base::Expected<CmId> resolve(const bench::Address& address);

// An id that listens there, and the next request to it; the request's greeting is checked. Null when `stop` was set.
base::Expected<CmId> listen(const bench::Address& address);
struct Request {
  CmId id;
  Greeting greeting;
};
base::Expected<Request> next_request(rdma_cm_id* listener, const std::atomic<bool>& stop);

// "rxe0 port 1, mtu 4096, fw ..."; and whether its verbs are software (Soft-RoCE, Soft-iWARP).
std::string describe(const rdma_cm_id* id);
bool is_emulated(ibv_context* device);
// Whether it does FETCH_ADD and COMPARE_SWAP; and how many READs and atomics a queue pair may have under way.
bool has_atomics(ibv_context* device);
uint32_t most_reads(ibv_context* device);

// 100 us: between two looks at something that need not be noticed at once.
void pause_briefly();

}  // namespace egret::bench_verbs
