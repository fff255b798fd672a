// The proxy's end of the TCP transport: connects, sends staged requests, takes the responses that are pushed.
//
//   stage_write ─▶ FrameWriter ─ flush ─▶ socket ─▶ poll: FrameReader ─▶ response image ─▶ kDelivered
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include "base/check.h"
#include "base/unique_fd.h"
#include "tls/mutual.h"
#include "transport/name_lookup.h"
#include "transport/tcp/frames.h"
#include "transport/tcp/tcp.h"

namespace egret::transport {

using base::Expected;
using base::Status;
using base::UniqueFd;
using namespace tcp;

namespace {

using verbs::AddressInfo;
using verbs::HostPort;
using verbs::NameLookup;

constexpr size_t kMaxWaitingFrames = 4;

// Looking up a name → connecting, address by address → [TLS handshake] → frames → data (from map_region on).
class TcpClientEndpoint final : public ClientEndpoint, private FrameSink {
 public:
  TcpClientEndpoint(std::string address, std::shared_ptr<const tls::Mutual> tls)
      : address_(std::move(address)), tls_(std::move(tls)) {
    limits_ = {.is_ordered = true, .results_are_pushed = true};
  }

  Status start(const HostPort& at) {
    host_ = at.host;
    control_.reset(::epoll_create1(EPOLL_CLOEXEC));
    if (!control_.is_open()) return Status::system_error("epoll_create1", errno);
    auto address = resolve(at, verbs::Resolve::kAddress);
    if (address) {
      resolved_ = std::move(address.value());
      return connect_to(resolved_.get());
    }
    lookup_.emplace(at);
    return watch(lookup_->fd(), EPOLLIN);
  }

  int control_fd() const override { return control_.get(); }
  Status receive_frame(std::span<std::byte> frame, size_t& length) override;
  Status send_frame(std::span<const std::byte> frame, bool attach) override;
  std::string facts() const override;
  std::string failure() const override { return failure_; }

  Status map_region(const RegionShape& shape) override;
  const Limits& limits() const override { return limits_; }
  std::byte* request_image() override { return requests_.data(); }
  const std::byte* response_image() const override { return responses_.data(); }

  void stage_write(uint32_t lane, size_t offset, size_t length, uint64_t first_word) override {
    EGRET_DCHECK(offset + length <= shape_.request_bytes && length >= sizeof first_word);
    std::byte* const at = requests_.data() + offset;
    std::memcpy(at, &first_word, sizeof first_word);
    add({.kind = FrameKind::kRequest,
         .lane = static_cast<uint16_t>(lane),
         .offset = static_cast<uint32_t>(offset),
         .length = static_cast<uint32_t>(length)},
        at);
  }
  void stage_read(uint32_t, size_t, size_t, uint64_t) override { EGRET_DCHECK(false); }  // results_are_pushed
  void flush() override {
    if ((writer_.is_empty() && !channel_.has_rest()) || is_broken_) return;
    if (writer_.flush(channel_) == FrameWriter::Sent::kFailed) {
      break_off(Status::system_error("the connection broke", errno).message());
    }
  }
  void ready() override { is_ready_ = true; }
  size_t poll(std::span<Event> events) override;
  void ring(uint32_t lane) override {
    add({.kind = FrameKind::kRing, .lane = static_cast<uint16_t>(lane)}, nullptr);
    flush();
  }
  int data_fd() const override { return channel_.fd(); }
  bool owns_descriptors() const override { return channel_.owns_socket(); }
  void arm() override {}
  void close() override {
    if (channel_.is_open()) ::shutdown(channel_.fd(), SHUT_RDWR);
    is_closed_ = true;
  }

 private:
  Status watch(int fd, uint32_t events) {
    epoll_event event{};
    event.events = events;
    if (::epoll_ctl(control_.get(), EPOLL_CTL_ADD, fd, &event) < 0) return Status::system_error("epoll_ctl", errno);
    return Status::ok();
  }
  Status take_lookup();
  Status connect_to(const addrinfo* address);
  Status finish_connecting();
  Status greet();
  Status lost(const std::string& why) const;
  void add(const FrameHead& head, const std::byte* body) {
    if (!writer_.add(head, body)) break_off("more requests were staged than there are slots");
  }
  void break_off(std::string why) {
    if (is_broken_) return;
    failure_ = std::move(why);
    is_broken_ = true;
  }
  bool read_more();
  std::byte* place_of(const FrameHead& head) override;
  bool take(const FrameHead& head) override;

  const std::string address_;
  const std::shared_ptr<const tls::Mutual> tls_;  // null: none
  std::string host_;                              // of the address
  std::optional<NameLookup> lookup_;              // while it is under way
  AddressInfo resolved_;
  const addrinfo* trying_ = nullptr;  // of resolved_
  UniqueFd control_;                  // readable when the lookup, the connecting or a frame has come
  Channel channel_;
  bool is_connected_ = false;
  bool may_speak_ = false;                              // connected, and the TLS handshake is over
  bool is_heard_ = false;                               // a frame has come
  std::vector<std::vector<std::byte>> waiting_frames_;  // until it may speak
  FrameReader reader_;
  FrameWriter writer_;
  alignas(uint64_t) std::array<std::byte, kMaxControl> body_;  // of a control frame
  size_t control_bytes_ = 0;                                   // of the last one
  bool has_region_ = false;                                    // has come
  Region region_;

  Limits limits_;
  RegionShape shape_;
  ZeroedMemory requests_, responses_;
  bool in_data_ = false;
  bool is_ready_ = false;         // the socket has told of something that was not looked for yet
  std::vector<Event> delivered_;  // not yet handed out from delivered_at_ on; at most one for each slot
  size_t delivered_at_ = 0;
  bool is_broken_ = false;
  bool is_told_ = false;  // kClosed is reported
  bool is_closed_ = false;
  std::string failure_ = "the connection broke";
};

// --- connecting

Status TcpClientEndpoint::take_lookup() {
  auto found = lookup_->take();
  if (!found) return found.status();
  if (found.value() == nullptr) return Status::ok();
  ::epoll_ctl(control_.get(), EPOLL_CTL_DEL, lookup_->fd(), nullptr);
  lookup_.reset();
  resolved_ = std::move(found.value());
  return connect_to(resolved_.get());
}

// Tries this address of the name, and the ones behind it if that fails at once.
Status TcpClientEndpoint::connect_to(const addrinfo* address) {
  int error = EADDRNOTAVAIL;
  for (; address != nullptr; address = address->ai_next) {
    channel_.open(UniqueFd(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
    if (!channel_.is_open()) {
      error = errno;
      continue;
    }
    set_options(channel_.fd());
    if (::connect(channel_.fd(), address->ai_addr, address->ai_addrlen) < 0 && errno != EINPROGRESS) {
      error = errno;
      continue;
    }
    trying_ = address;
    return watch(channel_.fd(), EPOLLOUT);
  }
  return Status::system_error("cannot connect to tcp:" + address_, error);
}

Status TcpClientEndpoint::finish_connecting() {
  epoll_event event{};
  if (::epoll_wait(control_.get(), &event, 1, 0) <= 0) return Status::ok();
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(channel_.fd(), SOL_SOCKET, SO_ERROR, &error, &size) < 0) error = errno;
  if (error != 0) {
    if (trying_->ai_next != nullptr) return connect_to(trying_->ai_next);
    return Status::system_error("cannot connect to tcp:" + address_, error);
  }
  is_connected_ = true;
  event.events = EPOLLIN;
  if (::epoll_ctl(control_.get(), EPOLL_CTL_MOD, channel_.fd(), &event) < 0) {
    return Status::system_error("epoll_ctl", errno);
  }
  if (tls_ != nullptr) channel_.speak_tls(tls_->connect(host_));
  return Status::ok();
}

// Speaks TLS, where it is asked for, then what has waited for that.
Status TcpClientEndpoint::greet() {
  auto greeted = channel_.greet();
  if (!greeted) return lost(greeted.message());
  if (!greeted.value()) return Status::ok();
  may_speak_ = true;
  for (const auto& frame : waiting_frames_) {
    if (Status sent = send_control(channel_, frame, nullptr); !sent) return sent;
  }
  waiting_frames_.clear();
  return Status::ok();
}

// The connection has ended. A backend that wants TLS, and hears none, hangs up; one that refuses our certificate says so
// when we take the handshake for done.
Status TcpClientEndpoint::lost(const std::string& why) const {
  std::string hint;
  if (!is_heard_ && tls_ == nullptr && reader_.has_peer_closed())
    hint = " before it said anything: it may ask for TLS (session_tls_certificate)";
  return Status::error("tcp:" + address_ + ": " + why + hint);
}

// --- frames

Status TcpClientEndpoint::receive_frame(std::span<std::byte> frame, size_t& length) {
  length = 0;
  if (is_closed_) return Status::error("closed");
  if (lookup_) return take_lookup();
  if (in_data_) return is_broken_ ? Status::error(failure_) : Status::ok();
  if (!is_connected_) {
    if (Status finished = finish_connecting(); !finished || !is_connected_) return finished;
  }
  if (!may_speak_) {
    if (Status greeted = greet(); !greeted || !may_speak_) return greeted;
  }
  for (;;) {
    const bool had_region = has_region_;
    switch (reader_.read_one(channel_, *this)) {
      case FrameReader::Found::kNothing:
      case FrameReader::Found::kMore:
        return Status::ok();
      case FrameReader::Found::kEnd:
        return lost(reader_.failure());
      case FrameReader::Found::kViolation:
        return Status::error("tcp:" + address_ + " is no egret-backend, or of another version");
      case FrameReader::Found::kFrame:
        is_heard_ = true;
        break;
    }
    if (has_region_ && !had_region) continue;
    if (control_bytes_ > frame.size()) return Status::error("a control frame that is too long");
    length = control_bytes_;
    std::copy_n(body_.begin(), length, frame.begin());
    return Status::ok();
  }
}

Status TcpClientEndpoint::send_frame(std::span<const std::byte> frame, bool) {
  if (may_speak_) return send_control(channel_, frame, nullptr);
  if (waiting_frames_.size() == kMaxWaitingFrames) return Status::error("cannot send a control frame: not connected");
  waiting_frames_.emplace_back(frame.begin(), frame.end());
  return Status::ok();
}

std::string TcpClientEndpoint::facts() const {
  if (!is_connected_) return "tcp, not connected";
  int mss = 0;
  socklen_t size = sizeof mss;
  ::getsockopt(channel_.fd(), IPPROTO_TCP, TCP_MAXSEG, &mss, &size);
  return "tcp, segments of " + std::to_string(mss) + " bytes" + channel_.facts();
}

std::byte* TcpClientEndpoint::place_of(const FrameHead& head) {
  switch (head.kind) {
    case FrameKind::kControl:
      return !in_data_ && head.length <= kMaxControl ? body_.data() : nullptr;
    case FrameKind::kRegion:
      return !in_data_ && head.length == sizeof(Region) ? body_.data() : nullptr;
    case FrameKind::kResponse:
      return in_data_ && is_response(shape_, head) ? responses_.data() + head.offset : nullptr;
    default:
      return nullptr;
  }
}

bool TcpClientEndpoint::take(const FrameHead& head) {
  if (head.kind == FrameKind::kControl) {
    control_bytes_ = head.length;
  } else if (head.kind == FrameKind::kRegion) {
    std::memcpy(&region_, body_.data(), sizeof region_);
    has_region_ = true;
  } else {
    // More than one of a slot at once: a response to a request that was not sent.
    if (delivered_.size() == delivered_.capacity()) return false;
    delivered_.push_back({.kind = Event::Kind::kDelivered,
                          .lane = head.lane,
                          .tag = 0,
                          .bytes = {responses_.data() + head.offset, head.length}});
  }
  return true;
}

// --- data

Status TcpClientEndpoint::map_region(const RegionShape& shape) {
  if (!has_region_) return Status::error("the backend granted a session without its region");
  if (region_ != region_of(shape)) return Status::error("the backend's region is not of the agreed size");
  if (shape.lanes == 0 || shape.reply_bytes == 0) return Status::error("a region without slots");
  shape_ = shape;
  if (Status made = requests_.create(shape.request_bytes); !made) return made;
  if (Status made = responses_.create(shape.response_bytes); !made) return made;
  const size_t slots = shape.response_bytes / shape.reply_bytes;
  writer_.set_capacity(2 * slots + shape.lanes);
  delivered_.reserve(slots);
  // From here on the socket belongs to data_fd() alone.
  ::epoll_ctl(control_.get(), EPOLL_CTL_DEL, channel_.fd(), nullptr);
  in_data_ = true;
  is_ready_ = !channel_.is_plain();  // it may have decrypted more than the grant
  return Status::ok();
}

// Reads once. Whether there may be more.
bool TcpClientEndpoint::read_more() {
  if (delivered_at_ == delivered_.size()) {
    delivered_.clear();
    delivered_at_ = 0;
  }
  switch (reader_.read_some(channel_, *this)) {
    case FrameReader::Found::kMore:
    case FrameReader::Found::kFrame:
      return true;
    case FrameReader::Found::kNothing:
      return false;
    case FrameReader::Found::kEnd:
      break_off(reader_.failure());
      return false;
    case FrameReader::Found::kViolation:
      break_off("the backend delivered to where there is no slot");
      return false;
  }
  return false;
}

size_t TcpClientEndpoint::poll(std::span<Event> events) {
  if (is_closed_) return 0;
  size_t found = 0;
  for (;;) {
    const size_t count = std::min(events.size() - found, delivered_.size() - delivered_at_);
    std::copy_n(delivered_.begin() + static_cast<ptrdiff_t>(delivered_at_), count,
                events.begin() + static_cast<ptrdiff_t>(found));
    delivered_at_ += count;
    found += count;
    if (found == events.size() || !is_ready_ || is_broken_) break;
    is_ready_ = read_more();
  }
  if (is_broken_ && !is_told_ && found < events.size() && delivered_at_ == delivered_.size()) {
    is_told_ = true;
    events[found++] = {.kind = Event::Kind::kClosed};
  }
  return found;
}

}  // namespace

Expected<std::unique_ptr<ClientEndpoint>> tcp_connect(const std::string& host_port, const ConnectOptions& options) {
  auto parsed = verbs::parse_host_port(host_port, "tcp");
  if (!parsed) return parsed.status();
  auto endpoint = std::make_unique<TcpClientEndpoint>(host_port, options.tls);
  if (Status started = endpoint->start(parsed.value()); !started) return started;
  return std::unique_ptr<ClientEndpoint>(std::move(endpoint));
}

Status check_tcp_address(const std::string& host_port, const std::string& scheme) {
  return verbs::parse_host_port(host_port, scheme).status();
}

}  // namespace egret::transport
