// One reliable connection of a hostile client: plain librdmacm and libibverbs, no code of the project. Owns the
// connection's rdma_cm id, protection domain, queue pair and memory, and posts any work request.
//
//   Connection(target, private data) ─▶ is_open? ─▶ post(work) … finish() = the device's verdict ─▶ is_ended?
//
// Synchronous; one thread at a time. Every wait is bounded: what does not come in time throws Failure, which ends the
// attack as failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>

namespace egret::hostile {

// What the attack expected of the backend or the device did not happen.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};
inline void require(bool holds, const std::string& what) {
  if (!holds) throw Failure(what);
}

// A memory of the other side, as the other side told it.
struct RemoteMemory {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint32_t key = 0;
  uint32_t reserved = 0;
};
static_assert(sizeof(RemoteMemory) == 24);

// One verb. Offsets count from the start of the connection's own memory and of `remote`.
struct Work {
  ibv_wr_opcode opcode = IBV_WR_SEND;
  size_t at = 0;
  uint32_t length = 0;
  RemoteMemory remote{};
  uint64_t offset = 0;
  uint32_t immediate = 0;  // or the key to invalidate
};

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* handle) const {
    Free(handle);
  }
};

class Connection {
 public:
  static constexpr size_t kReceives = 16;
  static constexpr size_t kReceiveBytes = 1024;
  // Own memory: [receive buffers | to send from | to read into | reply slots].
  static constexpr size_t kOut = kReceives * kReceiveBytes;
  static constexpr size_t kOutBytes = 80 * 1024;
  static constexpr size_t kIn = kOut + kOutBytes;
  static constexpr size_t kInBytes = 32 * 1024;
  static constexpr size_t kReplies = kIn + kInBytes;
  static constexpr size_t kRepliesBytes = 128 * 1024;
  static constexpr size_t kBytes = kReplies + kRepliesBytes;
  static constexpr uint32_t kSends = 128;  // posted at most

  // With fewer than all receives, those are all it ever posts. `source`: our address; null: as the kernel likes.
  Connection(const sockaddr_in& target, std::span<const std::byte> private_data, size_t receives = kReceives,
             const sockaddr_in* source = nullptr);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  // Whether the backend accepted; what it said with that.
  bool is_open() const { return is_open_; }
  std::span<const std::byte> accept_data() const { return accept_data_; }

  std::byte* memory() { return memory_.data(); }
  uint32_t key() const { return registration_->rkey; }

  // Waits for room in the send queue first; what finished meanwhile is forgotten, but for the first failure.
  void post(const Work& work);
  // How the oldest verb that has not been asked for ended.
  ibv_wc_status finish();
  ibv_wc_status run(const Work& work) {
    post(work);
    return finish();
  }
  // Copies `bytes` to where verbs send from. The place; it is the device's until the verb is finished.
  size_t put(std::span<const std::byte> bytes, size_t offset = 0);
  // A message of the backend's, if one comes in time.
  std::optional<std::vector<std::byte>> receive(double seconds);

  // The backend has hung up, within so long.
  bool is_ended(double seconds);
  // Whether a verb of this connection has failed.
  bool has_failed() const { return failed_; }
  void disconnect();

 private:
  rdma_cm_event_type next_event(double seconds);
  void connect(const sockaddr_in& target, std::span<const std::byte> private_data, size_t receives,
               const sockaddr_in* source);
  void make_queue_pair();
  void post_receive(size_t buffer);
  std::optional<ibv_wc_status> take();

  std::unique_ptr<rdma_event_channel, Freed<rdma_destroy_event_channel>> channel_;
  std::unique_ptr<rdma_cm_id, Freed<rdma_destroy_id>> id_;
  std::unique_ptr<ibv_pd, Freed<ibv_dealloc_pd>> domain_;
  std::unique_ptr<ibv_cq, Freed<ibv_destroy_cq>> sent_, received_;
  std::vector<std::byte> memory_;
  std::unique_ptr<ibv_mr, Freed<ibv_dereg_mr>> registration_;
  std::vector<std::byte> accept_data_;
  const bool receives_again_;
  bool is_open_ = false;
  bool ended_ = false;
  bool failed_ = false;
  uint32_t under_way_ = 0;
};

double now_seconds();

}  // namespace egret::hostile
