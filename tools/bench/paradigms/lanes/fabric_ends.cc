#include "bench_paradigms/lanes/fabric_ends.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "bench_paradigms/notice.h"

namespace egret::bench_paradigms {

using base::Status;
using transport::Event;

namespace {

constexpr size_t kPolled = 32;

Status make(Fabric& fabric, size_t bytes, uint8_t rights, std::unique_ptr<Memory>& memory) {
  auto made = fabric.make_memory(bytes, rights);
  if (!made) return made.status();
  memory = std::move(made.value());
  return Status::ok();
}

}  // namespace

// --- client

FabricClientEnd::FabricClientEnd(Fabric& fabric, const EndSpec& spec)
    : fabric_(fabric),
      spec_(spec),
      limits_{.read_depth = fabric.capabilities().read_depth, .needs_keep_alive = true},
      // A push may come for a slot whose last one is not taken yet: the client has fetched its response meanwhile.
      link_(fabric, 2 * spec.window, spec.is_inline) {}

Status FabricClientEnd::make_ready() {
  if (Status made = make(fabric_, spec_.shape.request_bytes, kNoRights, requests_); !made) return made;
  if (Status made = make(fabric_, spec_.shape.response_bytes, kNoRights, responses_); !made) return made;
  if (Status made = make(fabric_, spec_.shape.response_bytes, kRemoteWrite, replies_); !made) return made;
  return link_.prepare();
}

Status FabricClientEnd::join(const NodeAddress& server, const ServerTold& told, std::string_view grant) {
  if (told.requests.bytes != spec_.shape.request_bytes || told.responses.bytes != spec_.shape.response_bytes)
    return Status::error("the server's region is of another size");
  server_ = told;
  grant_ = grant;
  return link_.join(server, told.pair);
}

Status FabricClientEnd::receive_frame(std::span<std::byte> frame, size_t& length) {
  if (grant_.size() > frame.size()) return Status::error(kStrangeNotice);
  length = grant_.size();
  std::memcpy(frame.data(), grant_.data(), length);
  grant_.clear();
  return Status::ok();
}

Status FabricClientEnd::map_region(const transport::RegionShape& shape) {
  const bool is_agreed = shape.request_bytes == spec_.shape.request_bytes &&
                         shape.response_bytes == spec_.shape.response_bytes &&
                         shape.reply_bytes == spec_.shape.reply_bytes;
  return is_agreed ? Status::ok() : Status::error("the server grants a region of another size");
}

void FabricClientEnd::stage_write(uint32_t, size_t offset, size_t length, uint64_t first_word) {
  std::memcpy(requests_->data() + offset, &first_word, sizeof first_word);
  link_.stage(Verb::kWrite, *requests_, server_.requests, offset, length);
}

void FabricClientEnd::stage_read(uint32_t, size_t offset, size_t length, uint64_t tag) {
  link_.stage(Verb::kRead, *responses_, server_.responses, offset, length).tag = tag;
}

void FabricClientEnd::keep_alive() {
  link_.stage_probe(server_.requests);
  link_.flush();
}

Event FabricClientEnd::to_event(const Completion& done) const {
  if (done.verb == Verb::kRead) return {.kind = Event::Kind::kFetched, .tag = done.tag};
  // The immediate names the slot; its reply slot has the same offset as the response slot.
  const size_t offset = size_t{done.immediate} * spec_.shape.reply_bytes;
  if (offset >= spec_.shape.response_bytes || done.bytes > spec_.shape.reply_bytes) {
    return {.kind = Event::Kind::kClosed};
  }
  return {.kind = Event::Kind::kDelivered, .bytes = {replies_->data() + offset, done.bytes}};
}

size_t FabricClientEnd::poll(std::span<Event> events) {
  if (is_closed_ || events.empty()) return 0;
  std::array<Completion, kPolled> done;
  const size_t found = link_.poll(std::span(done).first(std::min(done.size(), events.size())));
  std::transform(done.begin(), done.begin() + found, events.begin(),
                 [this](const auto& each) { return to_event(each); });
  if (!link_.is_broken() || found == events.size()) return found;
  is_closed_ = true;
  events[found] = {.kind = Event::Kind::kClosed};
  return found + 1;
}

// --- server

FabricServerEnd::FabricServerEnd(Fabric& fabric, const EndSpec& spec)
    : fabric_(fabric), spec_(spec), link_(fabric, 0, spec.is_inline) {}

Status FabricServerEnd::create_region(const transport::RegionShape& shape) {
  if (Status made = make(fabric_, shape.request_bytes, kRemoteWrite, requests_); !made) return made;
  if (Status made = make(fabric_, shape.response_bytes, kRemoteRead, responses_); !made) return made;
  return link_.prepare();
}

Status FabricServerEnd::join(const NodeAddress& client, const ClientTold& told) {
  if (told.replies.bytes != spec_.shape.response_bytes) {
    return Status::error("the client's reply slots are of another size");
  }
  replies_ = told.replies;
  return link_.join(client, told.pair);
}

Status FabricServerEnd::receive_frame(std::span<std::byte>, size_t& length) {
  length = 0;
  return Status::ok();
}

void FabricServerEnd::deliver(uint32_t, size_t offset, size_t length) {
  Work& push = link_.stage(Verb::kWrite, *responses_, replies_, offset, length);
  push.has_immediate = true;
  push.immediate = static_cast<uint32_t>(offset / spec_.shape.reply_bytes);
  link_.flush();
}

size_t FabricServerEnd::poll(std::span<Event>) {
  std::array<Completion, kPolled> done;
  if (link_.has_under_way()) link_.poll(done);
  return 0;
}

}  // namespace egret::bench_paradigms
