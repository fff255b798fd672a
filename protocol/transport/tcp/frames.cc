#include "transport/tcp/frames.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "base/slot_copy.h"

namespace egret::transport::tcp {

using base::Status;

namespace {

// What one read may bring beyond the frame that is under way, and what is gathered to be encrypted. It is empty again when
// read_some() and flush() return, so all connections of a thread share it.
constexpr size_t kScratch = 64 << 10;
// Soon after a long body: what comes next is probably another one, of which all but the beginning is to go to its place.
constexpr size_t kLongBody = 32 << 10;
constexpr size_t kBehindLong = 4 << 10;
constexpr uint64_t kSoon = 16;  // frames
thread_local std::array<std::byte, kScratch> t_scratch;

// A peer that acknowledges nothing for this long is dead. The kernel probes idle connections, which wakes nobody.
constexpr unsigned kDeadAfterMs = 3000;
constexpr int kProbeAfterS = 1;
constexpr int kProbeEveryS = 1;

}  // namespace

Region region_of(const RegionShape& shape) {
  return {.request_bytes = shape.request_bytes,
          .response_bytes = shape.response_bytes,
          .lanes = shape.lanes,
          .reply_bytes = static_cast<uint32_t>(shape.reply_bytes)};
}

bool is_request(const RegionShape& shape, const FrameHead& head) {
  return head.kind == FrameKind::kRequest && head.lane < shape.lanes && head.length >= sizeof(uint64_t) &&
         head.offset + uint64_t{head.length} <= shape.request_bytes;
}

bool is_response(const RegionShape& shape, const FrameHead& head) {
  const size_t of_lane = shape.response_bytes / shape.lanes;
  return head.kind == FrameKind::kResponse && head.lane < shape.lanes && head.offset / of_lane == head.lane &&
         head.offset % shape.reply_bytes == 0 && head.length <= shape.reply_bytes && head.length >= sizeof(uint64_t) &&
         head.offset + uint64_t{head.length} <= shape.response_bytes;
}

bool is_ring(const RegionShape& shape, const FrameHead& head) {
  return head.kind == FrameKind::kRing && head.lane < shape.lanes && head.length == 0;
}

// --- reading

bool FrameReader::begin_body(FrameSink& sink) {
  if (head_.reserved != 0 || head_.offset % sizeof(uint64_t) != 0) return false;
  body_have_ = 0;
  place_ = sink.place_of(head_);
  return place_ != nullptr;
}

bool FrameReader::end_body(FrameSink& sink) {
  if (head_.length >= sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, first_word_.data(), sizeof word);
    base::publish_word(place_, word);
  } else {
    std::memcpy(place_, first_word_.data(), head_.length);
  }
  head_have_ = 0;
  since_long_ = head_.length >= kLongBody ? 0 : since_long_ + 1;
  return sink.take(head_);
}

void FrameReader::add_body(std::span<const std::byte> bytes) {
  const size_t early = std::min(bytes.size(), sizeof(uint64_t) - std::min(body_have_, sizeof(uint64_t)));
  std::memcpy(first_word_.data() + std::min(body_have_, sizeof(uint64_t)), bytes.data(), early);
  body_have_ += early;
  const auto rest = bytes.subspan(early);
  if (rest.empty()) return;
  std::memcpy(place_ + body_have_, rest.data(), rest.size());
  body_have_ += rest.size();
}

bool FrameReader::consume(std::span<const std::byte> bytes, FrameSink& sink) {
  while (!bytes.empty()) {
    const size_t taken = std::min(bytes.size(), missing());
    if (!is_in_body()) {
      std::memcpy(reinterpret_cast<std::byte*>(&head_) + head_have_, bytes.data(), taken);
      head_have_ += taken;
      if (is_in_body() && !begin_body(sink)) return false;
    } else {
      add_body(bytes.first(taken));
    }
    bytes = bytes.subspan(taken);
    if (is_in_body() && missing() == 0 && !end_body(sink)) return false;
  }
  return true;
}

FrameReader::Found FrameReader::ended(ssize_t got, const Channel& channel) {
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Found::kNothing;
  if (got == 0) {
    failure_ = "the peer closed the connection";
    has_peer_closed_ = true;
  } else if (const std::string why = channel.failure(); !why.empty()) {
    failure_ = "TLS: " + why;
  } else {
    has_peer_closed_ = errno == ECONNRESET;
    failure_ = Status::system_error("the connection broke", errno).message();
  }
  return Found::kEnd;
}

FrameReader::Found FrameReader::read_one(Channel& channel, FrameSink& sink) {
  for (;;) {
    std::array<std::byte, kMaxControl> piece;
    const size_t wanted = std::min(piece.size(), missing());
    const ssize_t got = channel.receive(std::span(piece).first(wanted));
    if (got <= 0) return ended(got, channel);
    if (!consume(std::span(piece).first(static_cast<size_t>(got)), sink)) return Found::kViolation;
    if (head_have_ == 0) return Found::kFrame;
  }
}

// What was decrypted is used up here: nothing would wake us for it later.
FrameReader::Found FrameReader::read_tls(Channel& channel, FrameSink& sink) {
  const ssize_t got = channel.fill();
  const int error = errno;
  bool any = false;
  for (auto plain = channel.decrypted(); !plain.empty(); plain = channel.decrypted()) {
    any = true;
    if (!consume(plain, sink)) return Found::kViolation;
  }
  if (!channel.failure().empty()) return ended(-1, channel);
  if (got > 0) return static_cast<size_t>(got) == Channel::kMostAtOnce ? Found::kMore : Found::kNothing;
  if (got < 0 && any && (error == EAGAIN || error == EINTR)) return Found::kNothing;
  errno = error;
  return ended(got, channel);
}

FrameReader::Found FrameReader::read_some(Channel& channel, FrameSink& sink) {
  if (!channel.is_plain()) return read_tls(channel, sink);
  // The rest of a body that is under way goes straight to its place.
  const size_t rest = is_in_body() && body_have_ >= sizeof(uint64_t) ? missing() : 0;
  std::array<iovec, 2> pieces{};
  pieces[0] = {rest > 0 ? place_ + body_have_ : nullptr, rest};
  const bool expects_long = since_long_ < kSoon || (rest > 0 && head_.length >= kLongBody);
  const size_t beyond = expects_long ? kBehindLong : t_scratch.size();
  pieces[1] = {t_scratch.data(), beyond};
  const ssize_t got = channel.receive(std::span<iovec>(pieces).subspan(rest > 0 ? 0 : 1));
  if (got <= 0) return ended(got, channel);
  const auto bytes = static_cast<size_t>(got);
  const size_t placed = std::min(bytes, rest);
  body_have_ += placed;
  if (placed > 0 && missing() == 0 && !end_body(sink)) return Found::kViolation;
  if (!consume(std::span(t_scratch).first(bytes - placed), sink)) return Found::kViolation;
  return bytes == rest + beyond ? Found::kMore : Found::kNothing;
}

// --- writing

bool FrameWriter::add(const FrameHead& head, const std::byte* body) {
  if (count_ == entries_.size()) return false;
  at(count_++) = {.head = head, .body = body};
  return true;
}

bool FrameWriter::add(const FrameHead& head, std::byte* body, std::span<const Piece> pieces) {
  if (!add(head, body)) return false;
  if (pieces_.size() + pieces.size() > kMostPieces) {
    copy_pieces(body, pieces);
    return true;
  }
  if (!pieces.empty()) pieces_.reserve(kMostPieces);
  Entry& entry = at(count_ - 1);
  entry.lacking = body;
  entry.first_piece = static_cast<uint32_t>(pieces_.size());
  entry.piece_count = static_cast<uint32_t>(pieces.size());
  pieces_.insert(pieces_.end(), pieces.begin(), pieces.end());
  return true;
}

// Copies the pieces of frames that still wait, since their owner may change them after flush().
void FrameWriter::end_pieces() {
  if (pieces_.empty()) return;
  for (size_t i = 0; i < count_; ++i) {
    Entry& entry = at(i);
    if (entry.piece_count > 0) copy_pieces(entry.lacking, pieces_of(entry));
    entry.piece_count = 0;
  }
  pieces_.clear();
}

void FrameWriter::drop(size_t bytes) {
  sent_ += bytes;
  while (count_ > 0 && sent_ >= at(0).bytes()) {
    sent_ -= at(0).bytes();
    first_ = (first_ + 1) % entries_.size();
    --count_;
  }
}

// Where the bytes of a frame are, without the first `done`. `into` holds entry.most_vectors().
std::span<const iovec> FrameWriter::vectors_of(Entry& entry, size_t done, std::span<iovec> into) const {
  size_t used = 0;
  const auto put = [&](const void* from, size_t length) {
    const size_t skipped = std::min(done, length);
    done -= skipped;
    if (skipped == length) return;
    into[used++] = {const_cast<char*>(static_cast<const char*>(from)) + skipped, length - skipped};
  };
  put(&entry.head, sizeof entry.head);
  size_t at = 0;  // in the body
  for (const Piece& piece : pieces_of(entry)) {
    put(entry.body + at, piece.offset - at);
    put(piece.bytes.data(), piece.bytes.size());
    at = piece.offset + piece.bytes.size();
  }
  put(entry.body + at, entry.head.length - at);
  return into.first(used);
}

// Copies what waits, as far as it fits, and drops it.
size_t FrameWriter::gather(std::span<std::byte> into) {
  size_t used = 0;
  while (count_ > 0 && used < into.size()) {
    std::array<iovec, kMostVectors> vectors;
    size_t taken = 0;
    for (const iovec& vector : vectors_of(at(0), sent_, vectors)) {
      const size_t part = std::min(vector.iov_len, into.size() - used - taken);
      std::memcpy(into.data() + used + taken, vector.iov_base, part);
      taken += part;
    }
    used += taken;
    drop(taken);
  }
  return used;
}

FrameWriter::Sent FrameWriter::send_all_tls(Channel& channel) {
  for (;;) {
    if (!channel.send_rest()) return errno == EAGAIN ? Sent::kBlocked : Sent::kFailed;
    if (!channel.failure().empty()) {
      errno = EPROTO;
      return Sent::kFailed;
    }
    if (count_ == 0) return Sent::kAll;
    channel.encrypt(std::span(t_scratch).first(gather(t_scratch)));
  }
}

FrameWriter::Sent FrameWriter::send_all(Channel& channel) {
  while (count_ > 0) {
    std::array<iovec, kMostVectors> vectors;
    size_t used = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < std::min(count_, kFramesAtOnce); ++i) {
      Entry& entry = at(i);
      if (used + entry.most_vectors() > vectors.size()) break;
      const size_t done = i == 0 ? sent_ : 0;
      used += vectors_of(entry, done, std::span(vectors).subspan(used)).size();
      bytes += entry.bytes() - done;
    }
    const ssize_t sent = channel.send(std::span(vectors).first(used));
    if (sent < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN ? Sent::kBlocked : Sent::kFailed;
    }
    drop(static_cast<size_t>(sent));
    if (static_cast<size_t>(sent) < bytes) return Sent::kBlocked;
  }
  return Sent::kAll;
}

FrameWriter::Sent FrameWriter::flush(Channel& channel) {
  const Sent sent = channel.is_plain() ? send_all(channel) : send_all_tls(channel);
  const int error = errno;
  end_pieces();
  errno = error;
  return sent;
}

Status send_control(Channel& channel, std::span<const std::byte> frame, const Region* region) {
  FrameHead region_head{.kind = FrameKind::kRegion, .length = sizeof(Region)};
  FrameHead head{.kind = FrameKind::kControl, .length = static_cast<uint32_t>(frame.size())};
  FrameWriter writer;
  writer.set_capacity(2);
  if (region != nullptr) writer.add(region_head, reinterpret_cast<const std::byte*>(region));
  writer.add(head, frame.data());
  if (writer.flush(channel) == FrameWriter::Sent::kAll) return Status::ok();
  return Status::system_error("cannot send a control frame", errno);
}

// --- memory, sockets

ZeroedMemory::~ZeroedMemory() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

Status ZeroedMemory::create(size_t bytes) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return Status::system_error("cannot allocate " + std::to_string(bytes) + " bytes", errno);
  data_ = static_cast<std::byte*>(at);
  bytes_ = bytes;
  return Status::ok();
}

void set_options(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &kProbeAfterS, sizeof kProbeAfterS);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &kProbeEveryS, sizeof kProbeEveryS);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kDeadAfterMs, sizeof kDeadAfterMs);
}

std::string host_of(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.ss_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
  } else if (address.ss_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text, sizeof text);
  }
  return text;
}

std::string name_of(const sockaddr_storage& address) {
  const in_port_t port = address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                                       : reinterpret_cast<const sockaddr_in&>(address).sin_port;
  return host_of(address) + " port " + std::to_string(ntohs(port));
}

}  // namespace egret::transport::tcp
