#include "admin/unix_relay.h"

#include <cerrno>
#include <span>
#include <utility>
#include <vector>

#include <sys/socket.h>

#include "base/local/peer_socket.h"

namespace egret::admin {

using base::UniqueFd;
using events::Event;

namespace {

constexpr int kRounds = 16;  // buffers that are carried before others have their turn

bool must_wait() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

}  // namespace

std::unique_ptr<UnixRelay> UnixRelay::begin(events::EventLoop& loop, UniqueFd client,
                                            std::function<void(UnixRelay&)> ended) {
  std::unique_ptr<UnixRelay> relay(new UnixRelay(std::move(client), std::move(ended)));
  return relay->open(loop) ? std::move(relay) : nullptr;
}

UnixRelay::UnixRelay(UniqueFd client, std::function<void(UnixRelay&)> ended)
    : client_(std::move(client)), ended_(std::move(ended)) {}

UnixRelay::~UnixRelay() {
  for (Half* const half : {&requests_, &answers_}) {
    half->readable.reset();
    half->writable.reset();
  }
  base::close_peer_socket(std::move(client_));
}

bool UnixRelay::open(events::EventLoop& loop) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return false;
  ours_.reset(ends[0]);
  servers_.reset(ends[1]);
  const auto watch = [&](Half& half, const UniqueFd& from, const UniqueFd& to) {
    half.relay = this;
    half.from = from.get();
    half.to = to.get();
    half.readable = Event::on_fd<&Half::on_ready>(loop, half.from, events::kRead, half);
    half.writable = Event::on_fd<&Half::on_ready>(loop, half.to, events::kWrite, half);
    return half.readable.add().is_ok();
  };
  return watch(requests_, client_, ours_) && watch(answers_, ours_, client_);
}

void UnixRelay::go_on(Half& half) {
  const Moved moved = move(half);
  if (moved == Moved::kWaits || (moved == Moved::kOver && &half == &requests_)) return;
  if (&half == &requests_) deliver();  // libmicrohttpd may have answered and closed its end before it had read all
  const auto ended = ended_;
  ended(*this);  // `this` may be gone
}

UnixRelay::Moved UnixRelay::move(Half& half) {
  for (int i = 0; i < kRounds; ++i) {
    if (half.begin == half.end) {
      const ssize_t got = half.is_over ? 0 : receive(half);
      if (got < 0) return must_wait() && half.readable.add() ? Moved::kWaits : Moved::kFailed;
      half.is_over = got == 0;
      half.begin = 0;
      half.end = static_cast<size_t>(got);
      if (half.is_over) return ::shutdown(half.to, SHUT_WR), Moved::kOver;
    }
    const ssize_t sent = ::send(half.to, half.bytes.data() + half.begin, half.end - half.begin, MSG_NOSIGNAL);
    if (sent < 0) return must_wait() && half.writable.add() ? Moved::kWaits : Moved::kFailed;
    half.begin += static_cast<size_t>(sent);
  }
  return (half.begin == half.end ? half.readable : half.writable).add() ? Moved::kWaits : Moved::kFailed;
}

// As recv().
ssize_t UnixRelay::receive(Half& half) {
  if (&half == &answers_) return ::recv(half.from, half.bytes.data(), half.bytes.size(), 0);
  std::vector<UniqueFd> descriptors;
  const base::FromPeer got = base::receive_from_peer(half.from, half.bytes, descriptors);
  if (descriptors.empty()) return got.bytes;
  base::close_elsewhere(descriptors);
  errno = EPERM;
  return -1;
}

}  // namespace egret::admin
