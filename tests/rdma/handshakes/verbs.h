// The least of libibverbs that the handshakes need, by RAII: a device, registered memory, one end of a reliable
// connection. Each Endpoint belongs to one thread once connected. Trouble ends the program (die).
//
// What it fixes, for whoever writes the transport: RECVs are posted before the queue pair can receive anything and each
// is posted again as it is used; the RNR timer is set (12 = 640 us; the default of rdma_cm, 0, is 655 ms); the queue
// pair is drained before its memory goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <infiniband/verbs.h>

namespace egret::handshakes {

inline constexpr uint32_t kRecvs = 128;  // posted at all times
inline constexpr uint32_t kSendDepth = 256;
inline constexpr uint32_t kReadDepth = 16;  // READs in flight; more would stall the send queue
inline constexpr uint32_t kInlineBytes = 64;

class Device {
 public:
  Device();  // the first device, its first port, its RoCE v2 address
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ibv_context* context() const { return context_; }
  const ibv_gid& gid() const { return gid_; }
  uint8_t gid_index() const { return gid_index_; }

 private:
  ibv_context* context_ = nullptr;
  ibv_gid gid_{};
  uint8_t gid_index_ = 0;
};

// Zeroed, page-aligned memory; registered by the Endpoint that shows it to the network or sends from it.
class Buffer {
 public:
  explicit Buffer(size_t size);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::byte* at(size_t offset) const { return data_ + offset; }
  size_t size() const { return size_; }

 private:
  std::byte* data_;
  size_t size_;
};

// Where verbs of the other side reach: an address and the key that opens it.
struct Remote {
  uint64_t address = 0;
  uint32_t key = 0;
};

// A protection domain, a completion queue with its channel, a queue pair.
class Endpoint {
 public:
  explicit Endpoint(const Device& device);
  ~Endpoint();  // error state → drain → queue pair → memory → queue → channel → domain
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  ibv_mr* add_memory(const Buffer& buffer, int access);
  void connect(const Endpoint& peer);  // both ends must be connected before either posts

  void read(uint64_t tag, std::byte* to, const ibv_mr* mr, size_t length, Remote from);  // signalled
  void write(const std::byte* from, const ibv_mr* mr, size_t length, Remote to);         // unsignalled
  void write_inline(const void* from, size_t length, Remote to);                         // unsignalled
  // With an immediate, which takes a RECV of the peer and wakes it when its queue is armed. length may be 0.
  void write_with_imm(const std::byte* from, const ibv_mr* mr, size_t length, Remote to, uint32_t imm, bool signalled);

  // Puts up to completions.size() in `completions`, all successful; takes care of posting used RECVs again.
  size_t poll(std::span<ibv_wc> completions);
  // The next completion that comes *after* this raises one event. Completions that are there already raise none.
  void arm();
  int channel_fd() const { return channel_->fd; }
  void take_events();  // reads and acknowledges what the channel holds; never blocks

 private:
  void post(ibv_send_wr& work);
  void post_recv();
  void drain();

  const Device& device_;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  std::vector<ibv_mr*> memory_;
};

}  // namespace egret::handshakes
