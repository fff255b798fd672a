#include "transport/local/endpoints.h"

#include <algorithm>
#include <cerrno>
#include <sstream>

#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/slot_copy.h"

namespace egret::transport::local {

using base::Status;
using base::UniqueFd;

namespace {

constexpr uint32_t kReadDepth = 4096;  // staged reads are only remembered

Limits local_limits() {
  return {.read_depth = kReadDepth,
          .deliver_is_wakeup = true,
          .is_ordered = true,
          .fetch_is_local = true,
          .ring_is_wakeup = true,
          .is_one_process = true};
}

Status receive(int socket, std::span<std::byte> frame, size_t& length) {
  length = 0;
  const ssize_t got = ::recv(socket, frame.data(), frame.size(), MSG_DONTWAIT);
  if (got > 0) {
    length = static_cast<size_t>(got);
    return Status::ok();
  }
  if (got == 0) return Status::error("the peer is gone");
  if (errno == EAGAIN || errno == EINTR) return Status::ok();
  return Status::system_error("the control socket failed", errno);
}

Status send(int socket, std::span<const std::byte> frame) {
  if (::send(socket, frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return Status::ok();
  return Status::system_error("cannot send a control frame", errno);
}

std::string name_of(std::thread::id client) {
  std::ostringstream text;
  text << "this process, thread " << client;
  return text.str();
}

// This process's own, as the kernel would say of a peer.
PeerUser own_user() {
  PeerUser user{.uid = ::geteuid(), .gids = {::getegid()}};
  const int count = ::getgroups(0, nullptr);
  std::vector<gid_t> others(static_cast<size_t>(std::max(count, 0)));
  if (const int got = ::getgroups(count, others.data()); got > 0) {
    user.gids.insert(user.gids.end(), others.begin(), others.begin() + got);
  }
  return user;
}

}  // namespace

// --- the server's end

LocalServerEndpoint::LocalServerEndpoint(UniqueFd socket, std::shared_ptr<Link> link)
    : socket_(std::move(socket)),
      link_(std::move(link)),
      peer_(name_of(link_->client)),
      user_(own_user()),
      limits_(local_limits()) {
  limits_.same_process = this;
  limits_.transport = "local";
}

Status LocalServerEndpoint::receive_frame(std::span<std::byte> frame, size_t& length) {
  return receive(socket_.get(), frame, length);
}

// The client looks for the region when it has the frame: it must be there before.
Status LocalServerEndpoint::send_frame(std::span<const std::byte> frame, bool attach) {
  if (attach) {
    const std::lock_guard lock(link_->mutex);
    link_->granted = region_;
  }
  return send(socket_.get(), frame);
}

Status LocalServerEndpoint::create_region(const RegionShape& shape) {
  auto made = Region::make(shape);
  if (!made) return made.status();
  region_ = std::move(made.value());
  return Status::ok();
}

void LocalServerEndpoint::serve_at_flush(uint32_t lane, FlushServer* server) {
  EGRET_DCHECK(is_clients_thread());
  region_->at_flush(lane) = server;
}

// A client that is served by its own thread is awake while it is: it looks when its flush() returns.
void LocalServerEndpoint::deliver(uint32_t lane, size_t, size_t) {
  if (is_clients_thread() && region_->at_flush(lane) != nullptr) return;
  region_->deliver();
}

void LocalServerEndpoint::close() {
  ::shutdown(socket_.get(), SHUT_RDWR);
}

// --- the client's end

LocalClientEndpoint::LocalClientEndpoint(UniqueFd socket, std::shared_ptr<Link> link)
    : socket_(std::move(socket)), link_(std::move(link)), limits_(local_limits()) {
  reads_.reserve(kReadDepth);
}

Status LocalClientEndpoint::receive_frame(std::span<std::byte> frame, size_t& length) {
  return receive(socket_.get(), frame, length);
}

Status LocalClientEndpoint::send_frame(std::span<const std::byte> frame, bool) {
  return send(socket_.get(), frame);
}

Status LocalClientEndpoint::map_region(const RegionShape& shape) {
  std::shared_ptr<Region> granted;
  {
    const std::lock_guard lock(link_->mutex);
    granted = link_->granted;
  }
  if (granted == nullptr) return Status::error("the backend granted a session without its region");
  const RegionShape& made = granted->shape();
  if (made.lanes != shape.lanes || made.request_bytes != shape.request_bytes ||
      made.response_bytes != shape.response_bytes) {
    return Status::error("the backend's region is not of the agreed size");
  }
  region_ = std::move(granted);
  written_servers_.reserve(shape.lanes);
  return Status::ok();
}

void LocalClientEndpoint::stage_write(uint32_t lane, size_t offset, size_t, uint64_t first_word) {
  base::publish_word(region_->requests() + offset, first_word);
  FlushServer* const server = region_->at_flush(lane);
  if (server == nullptr) {
    has_written_to_others_ = true;
  } else if (std::ranges::find(written_servers_, server) == written_servers_.end()) {
    written_servers_.push_back(server);
  }
}

void LocalClientEndpoint::stage_read(uint32_t, [[maybe_unused]] size_t offset, [[maybe_unused]] size_t length,
                                     uint64_t tag) {
  EGRET_DCHECK(offset + length <= region_->shape().response_bytes && reads_.size() < kReadDepth);
  reads_.push_back({.kind = Event::Kind::kFetched, .lane = 0, .tag = tag, .bytes = {}});
}

// First what others serve, so that they work meanwhile. The fence orders the published requests before what is read next
// (asleep, want): the server fences the other way round. Within one thread there is nothing to order.
void LocalClientEndpoint::flush() {
  if (has_written_to_others_) base::full_fence();
  has_written_to_others_ = false;
  for (FlushServer* const server : written_servers_) server->on_flush();
  written_servers_.clear();
}

op::DirectStore* LocalClientEndpoint::direct_store(uint32_t lane) {
  FlushServer* const server = region_->at_flush(lane);
  return server == nullptr ? nullptr : server->direct_store();
}

size_t LocalClientEndpoint::poll(std::span<Event> events) {
  const size_t count = std::min(events.size(), reads_.size() - reads_done_);
  std::copy_n(reads_.begin() + static_cast<ptrdiff_t>(reads_done_), count, events.begin());
  reads_done_ += count;
  if (reads_done_ == reads_.size()) {
    reads_.clear();
    reads_done_ = 0;
  }
  return count;
}

void LocalClientEndpoint::ring(uint32_t lane) {
  region_->ring(lane, link_->home < static_cast<int>(region_->shape().lanes) ? link_->home : -1);
}

void LocalClientEndpoint::close() {
  ::shutdown(socket_.get(), SHUT_RDWR);
  reads_.clear();
  reads_done_ = 0;
  written_servers_.clear();
}

}  // namespace egret::transport::local
