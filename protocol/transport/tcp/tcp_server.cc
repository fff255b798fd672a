// The backend's end of the TCP transport: listens, reads requests into request memory, pushes responses.
//
//   socket ─ poll: FrameReader ─▶ request memory, kRing of its lane │ deliver ─▶ FrameWriter ─ flush ─▶ socket
//
// Control thread until the frame with attach is sent; from then on the socket is the home's, and only close() is the
// control thread's.
#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <sys/epoll.h>

#include "base/service/listening.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "tls/mutual.h"
#include "transport/tcp/frames.h"
#include "transport/tcp/tcp.h"
#include "transport/verbs_common.h"

namespace egret::transport {

using base::Expected;
using base::Status;
using base::UniqueFd;
using namespace tcp;

namespace {

constexpr int kBacklog = 4096;  // a thousand hosts by four workers; net.core.somaxconn may allow less
// A TLS handshake takes about a millisecond of the control thread. A peer may have 512 parts of connections in a second.
constexpr int kPartsOfTls = 8;

class TcpServerEndpoint final : public ServerEndpoint, private FrameSink {
 public:
  TcpServerEndpoint(UniqueFd socket, const sockaddr_storage& from, const TlsOffer& tls, Doorkeeper* doorkeeper)
      : peer_group_(host_of(from)), peer_(name_of(from)), tls_(tls), doorkeeper_(doorkeeper) {
    limits_ = {.is_ordered = true,
               .ring_is_wakeup = true,
               .results_are_pushed = true,
               .sends_pieces = true,
               .is_received_by_poll = true,
               .transport = "tcp"};
    channel_.open(std::move(socket));
    set_options(channel_.fd());
  }
  Status open() {
    control_.reset(::epoll_create1(EPOLL_CLOEXEC));
    epoll_event event{};
    event.events = EPOLLIN;
    if (!control_.is_open() || ::epoll_ctl(control_.get(), EPOLL_CTL_ADD, channel_.fd(), &event) < 0) {
      return Status::system_error("epoll", errno);
    }
    return Status::ok();
  }

  int control_fd() const override { return control_.get(); }
  Status receive_frame(std::span<std::byte> frame, size_t& length) override;
  Status send_frame(std::span<const std::byte> frame, bool attach) override;
  std::string facts() const override { return "tcp" + channel_.facts(); }
  std::string failure() const override { return failure_; }

  Status create_region(const RegionShape& shape) override;
  const Limits& limits() const override { return limits_; }
  const std::string& peer() const override { return peer_; }
  const std::string& peer_group() const override { return peer_group_; }
  const std::byte* request_memory() const override { return requests_.data(); }
  std::byte* response_memory() override { return responses_.data(); }

  void deliver(uint32_t lane, size_t offset, size_t length) override { deliver_pieces(lane, offset, length, {}); }
  void deliver_pieces(uint32_t lane, size_t offset, size_t length, std::span<const Piece> pieces) override {
    const FrameHead head{.kind = FrameKind::kResponse,
                         .lane = static_cast<uint16_t>(lane),
                         .offset = static_cast<uint32_t>(offset),
                         .length = static_cast<uint32_t>(length)};
    if (!writer_.add(head, responses_.data() + offset, pieces)) {
      break_off("the peer sent more requests than it has slots, and takes no responses");
    }
  }
  bool flush() override {
    if (is_broken_) return true;
    const FrameWriter::Sent sent = writer_.flush(channel_);
    if (sent == FrameWriter::Sent::kFailed) break_off(Status::system_error("the connection broke", errno).message());
    return sent != FrameWriter::Sent::kBlocked;
  }
  void ready() override { is_ready_ = true; }
  size_t poll(std::span<Event> events) override;
  int data_fd() const override { return channel_.fd(); }
  void arm() override {}
  void close() override { ::shutdown(channel_.fd(), SHUT_RDWR); }

 private:
  void break_off(std::string why) {
    if (is_broken_) return;
    failure_ = std::move(why);
    is_broken_ = true;
  }
  void read_more();
  Expected<bool> greet();
  std::byte* place_of(const FrameHead& head) override;
  bool take(const FrameHead& head) override;

  const std::string peer_group_;
  const std::string peer_;
  const TlsOffer tls_;
  Doorkeeper* const doorkeeper_;  // null: nobody counts what a handshake costs
  Channel channel_;
  UniqueFd control_;
  bool is_greeted_ = false;  // the peer has chosen TLS, or none, and the handshake is over
  bool in_data_ = false;
  FrameReader reader_;
  FrameWriter writer_;
  alignas(uint64_t) std::array<std::byte, kMaxControl> body_;  // of a control frame
  size_t control_bytes_ = 0;                                   // of the last one

  Limits limits_;
  RegionShape shape_;
  ZeroedMemory requests_, responses_;
  // The home's.
  bool is_ready_ = false;         // the socket has told of something that was not looked for yet
  std::vector<uint32_t> rung_;    // lanes for which something came, once each, not yet handed out
  std::vector<uint8_t> is_rung_;  // by lane
  bool is_broken_ = false;
  bool is_told_ = false;  // kClosed is reported
  std::string failure_ = "the connection broke";
};

// --- frames

// The peer's first byte says whether it speaks TLS.
Expected<bool> TcpServerEndpoint::greet() {
  if (tls_.mutual != nullptr && channel_.is_plain()) {
    uint8_t first = 0;
    const ssize_t got = ::recv(channel_.fd(), &first, sizeof first, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got < 0) return Status::system_error("the connection broke", errno);
    if (got == 0) return Status::error("the peer closed the connection");
    if (first == FrameReader::kTlsHandshake) {
      for (int parts = 0; doorkeeper_ != nullptr && parts < kPartsOfTls; ++parts) doorkeeper_->charge(peer_group_);
      channel_.speak_tls(tls_.mutual->accept());
    } else if (tls_.is_required) {
      return Status::error("the peer does not speak TLS: give the proxy session_tls_certificate, too");
    } else {
      return is_greeted_ = true;
    }
  }
  auto greeted = channel_.greet();
  if (greeted) is_greeted_ = greeted.value();
  return greeted;
}

Status TcpServerEndpoint::receive_frame(std::span<std::byte> frame, size_t& length) {
  length = 0;
  if (in_data_) return Status::ok();
  if (!is_greeted_) {
    const auto greeted = greet();
    if (!greeted) return greeted.status();
    if (!greeted.value()) return Status::ok();
  }
  switch (reader_.read_one(channel_, *this)) {
    case FrameReader::Found::kNothing:
    case FrameReader::Found::kMore:
      return Status::ok();
    case FrameReader::Found::kEnd:
      return Status::error(reader_.failure());
    case FrameReader::Found::kViolation:
      return Status::error(reader_.is_tls() ? "the peer speaks TLS, and this backend has no session_tls_certificate"
                                            : "the peer speaks another protocol");
    case FrameReader::Found::kFrame:
      break;
  }
  if (control_bytes_ > frame.size()) return Status::error("a control frame that is too long");
  length = control_bytes_;
  std::copy_n(body_.begin(), length, frame.begin());
  return Status::ok();
}

Status TcpServerEndpoint::send_frame(std::span<const std::byte> frame, bool attach) {
  if (in_data_) return Status::error("cannot send a control frame: the session is open");
  if (!attach) return send_control(channel_, frame, nullptr);
  const Region region = region_of(shape_);
  Status sent = send_control(channel_, frame, &region);
  ::epoll_ctl(control_.get(), EPOLL_CTL_DEL, channel_.fd(), nullptr);
  in_data_ = true;
  is_ready_ = !channel_.is_plain();  // a peer that did not wait for the grant may have more in here
  return sent;
}

std::byte* TcpServerEndpoint::place_of(const FrameHead& head) {
  switch (head.kind) {
    case FrameKind::kControl:  // in the data phase: the client's ready
      return head.length <= kMaxControl ? body_.data() : nullptr;
    case FrameKind::kRing:
      return in_data_ && is_ring(shape_, head) ? body_.data() : nullptr;
    case FrameKind::kRequest:
      return in_data_ && is_request(shape_, head) ? requests_.data() + head.offset : nullptr;
    default:
      return nullptr;
  }
}

bool TcpServerEndpoint::take(const FrameHead& head) {
  if (head.kind == FrameKind::kControl) {
    control_bytes_ = head.length;
    return true;
  }
  if (is_rung_[head.lane] == 0) {
    is_rung_[head.lane] = 1;
    rung_.push_back(head.lane);
  }
  return true;
}

// --- data

Status TcpServerEndpoint::create_region(const RegionShape& shape) {
  if (shape.lanes == 0 || shape.reply_bytes == 0) return Status::error("a region without slots");
  shape_ = shape;
  if (Status made = requests_.create(shape.request_bytes); !made) return made;
  if (Status made = responses_.create(shape.response_bytes); !made) return made;
  writer_.set_capacity(shape.response_bytes / shape.reply_bytes);
  rung_.reserve(shape.lanes);
  is_rung_.assign(shape.lanes, 0);
  return Status::ok();
}

void TcpServerEndpoint::read_more() {
  FrameReader::Found found = reader_.read_some(channel_, *this);
  // The rest of a long request goes to its place by a second read, for which nobody need wake this thread.
  if (found == FrameReader::Found::kMore && reader_.is_in_body()) found = reader_.read_some(channel_, *this);
  if (found == FrameReader::Found::kEnd) break_off(reader_.failure());
  if (found == FrameReader::Found::kViolation) break_off("the peer sent a frame that has no place");
}

// One read in each call, or two: data_fd() goes on to be readable while there is more, and others have their turn.
size_t TcpServerEndpoint::poll(std::span<Event> events) {
  if (std::exchange(is_ready_, false) && !is_broken_) read_more();
  size_t found = 0;
  while (found < events.size() && !rung_.empty()) {
    const uint32_t lane = rung_.back();
    rung_.pop_back();
    is_rung_[lane] = 0;
    events[found++] = {.kind = Event::Kind::kRing, .lane = lane, .tag = 0, .bytes = {}};
  }
  if (is_broken_ && !is_told_ && found < events.size()) {
    is_told_ = true;
    events[found++] = {.kind = Event::Kind::kClosed};
  }
  return found;
}

// --- listening

class TcpListener final : public Listener {
 public:
  TcpListener(std::string address, TlsOffer tls) : address_(std::move(address)), tls_(std::move(tls)) {}

  // At every address of the name that this machine has.
  Status listen(const base::HostPort& at) {
    const std::string cannot = "cannot listen on tcp:" + address_;
    ready_.reset(::epoll_create1(EPOLL_CLOEXEC));
    if (!ready_.is_open()) return Status::system_error(cannot, errno);
    auto places = base::resolve_to_listen(at.host, at.port, cannot);
    if (!places) return places.status();
    int absent = 0;
    for (const addrinfo* place = places.value().get(); place != nullptr; place = place->ai_next) {
      UniqueFd socket = base::listen_at(*place, kBacklog);
      if (!socket.is_open()) {
        if (!base::is_absent(errno)) return Status::system_error(cannot, errno);
        absent = errno;
        continue;
      }
      epoll_event event{};
      event.events = EPOLLIN;
      if (::epoll_ctl(ready_.get(), EPOLL_CTL_ADD, socket.get(), &event) < 0) {
        return Status::system_error(cannot, errno);
      }
      sockets_.push_back(std::move(socket));
    }
    return sockets_.empty() ? Status::system_error(cannot, absent) : Status::ok();
  }

  int fd() const override { return ready_.get(); }
  bool needs_pause() const override { return needs_pause_; }
  void offer(const TlsOffer& tls) override { tls_ = tls; }
  void set_doorkeeper(Doorkeeper* doorkeeper) override { doorkeeper_ = doorkeeper; }

  Expected<std::unique_ptr<ServerEndpoint>> accept() override {
    needs_pause_ = false;
    sockaddr_storage from{};
    for (const UniqueFd& socket : sockets_) {
      socklen_t length = sizeof from;
      UniqueFd peer(::accept4(socket.get(), reinterpret_cast<sockaddr*>(&from), &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (peer.is_open()) return answer(std::move(peer), from);
      if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) continue;
      needs_pause_ = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      return Status::system_error("accept on tcp:" + address_, errno);
    }
    return std::unique_ptr<ServerEndpoint>();
  }

 private:
  Expected<std::unique_ptr<ServerEndpoint>> answer(UniqueFd peer, const sockaddr_storage& from) {
    if (doorkeeper_ != nullptr && !doorkeeper_->lets_in(host_of(from))) {
      return Status::error("tcp:" + address_ + ": " + name_of(from) + " connects too often, and was turned away");
    }
    auto endpoint = std::make_unique<TcpServerEndpoint>(std::move(peer), from, tls_, doorkeeper_);
    if (Status opened = endpoint->open(); !opened) {
      needs_pause_ = true;
      return opened;
    }
    return std::unique_ptr<ServerEndpoint>(std::move(endpoint));
  }

  const std::string address_;
  TlsOffer tls_;
  std::vector<UniqueFd> sockets_;
  UniqueFd ready_;  // readable when one of them is
  bool needs_pause_ = false;
  Doorkeeper* doorkeeper_ = nullptr;
};

}  // namespace

Expected<std::unique_ptr<Listener>> tcp_listen(const std::string& host_port, const ListenOptions& options) {
  if (Status valid = check_tcp_address(host_port); !valid) return valid;
  auto listener = std::make_unique<TcpListener>(host_port, options.tls);
  if (Status listening = listener->listen(*base::parse_host_port(host_port)); !listening) return listening;
  return std::unique_ptr<Listener>(std::move(listener));
}

}  // namespace egret::transport
