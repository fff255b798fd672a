#include "bench_paradigms/session/frame.h"

#include <utility>

namespace egret::bench_paradigms {

using base::Status;

namespace {

struct Head {
  uint32_t magic = kFrameMagic;
  uint16_t version = kFrameVersion;
  uint16_t type = 0;
  uint64_t bytes = 0;
};
static_assert(sizeof(Head) == kFrameHead);

}  // namespace

std::string to_bytes(FrameType type, std::string_view body) {
  const Head head{.type = static_cast<uint16_t>(type), .bytes = body.size()};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  bytes.append(body);
  return bytes;
}

Status FrameReader::add(std::string_view part) {
  bytes_.append(part);
  while (bytes_.size() >= kFrameHead) {
    Head head;
    std::memcpy(&head, bytes_.data(), sizeof head);
    if (head.magic != kFrameMagic) return Status::error("the other side is no egret-bench paradigms");
    if (head.version != kFrameVersion) return Status::error("the other side is an egret-bench of another version");
    if (head.type == 0 || head.type > kLastFrameType || head.bytes > most_) {
      return Status::error("the other side sends nonsense");
    }
    const size_t whole = kFrameHead + static_cast<size_t>(head.bytes);
    if (bytes_.size() < whole) break;
    frames_.push_back({static_cast<FrameType>(head.type), bytes_.substr(kFrameHead, whole - kFrameHead)});
    bytes_.erase(0, whole);
  }
  return Status::ok();
}

Frame FrameReader::take() {
  Frame frame = std::move(frames_.front());
  frames_.pop_front();
  return frame;
}

bool FieldReader::get_bool() {
  const auto byte = get<uint8_t>();
  if (byte > 1) is_good_ = false;
  return byte == 1;
}

std::string_view FieldReader::cut(uint64_t bytes) {
  if (!is_good_ || bytes > rest_.size()) {
    is_good_ = false;
    return {};
  }
  const std::string_view found = rest_.substr(0, static_cast<size_t>(bytes));
  rest_.remove_prefix(static_cast<size_t>(bytes));
  return found;
}

}  // namespace egret::bench_paradigms
