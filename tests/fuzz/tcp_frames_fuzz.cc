// Any bytes from a TCP peer, to either side: whatever they are and however they are cut, a body lies inside of the
// memory of the session, at a place that the side accepts, and the same frames come out of every cut.
//
//   input: a byte that chooses the side, a byte that chooses the cuts, and the stream
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "input.h"
#include "transport/tcp/frames.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

using namespace egret;
using namespace egret::transport::tcp;

namespace {

// Small, so that few bytes of input are many frames.
constexpr transport::RegionShape kShape{
    .lanes = 3, .request_bytes = 3 * 64 + 3 * 128, .response_bytes = 3 * 128, .reply_bytes = 64};

// A side of a session, with a memory of the exact size, so that a byte beside it is found by the sanitizer.
class Side final : public FrameSink {
 public:
  explicit Side(bool is_server)
      : is_server_(is_server), memory_(is_server ? kShape.request_bytes : kShape.response_bytes) {}

  std::byte* place_of(const FrameHead& head) override {
    if (head.kind == FrameKind::kControl) return head.length <= kMaxControl ? body_.data() : nullptr;
    if (is_server_ && is_ring(kShape, head)) return body_.data();
    if (!(is_server_ ? is_request(kShape, head) : is_response(kShape, head))) return nullptr;
    EGRET_CHECK(head.offset % sizeof(uint64_t) == 0 && head.lane < kShape.lanes);
    EGRET_CHECK(head.offset < memory_.size() && head.length <= memory_.size() - head.offset);
    return memory_.data() + head.offset;
  }
  bool take(const FrameHead& head) override {
    heads_.push_back(head);
    return heads_.size() < kMostFrames;
  }
  bool operator==(const Side& other) const {
    const auto same = [](const FrameHead& a, const FrameHead& b) {
      return a.kind == b.kind && a.lane == b.lane && a.offset == b.offset && a.length == b.length;
    };
    return memory_ == other.memory_ && std::ranges::equal(heads_, other.heads_, same);
  }

 private:
  static constexpr size_t kMostFrames = 64;
  const bool is_server_;
  std::vector<std::byte> memory_;
  alignas(uint64_t) std::array<std::byte, kMaxControl> body_{};
  std::vector<FrameHead> heads_;
};

// Gives the stream in pieces of 1 to `most` bytes. Whether all of it was acceptable.
bool feed(Side& side, std::span<const std::byte> stream, size_t most) {
  FrameReader reader;
  for (size_t piece = 1; !stream.empty(); piece = piece * 5 % most + 1) {
    const size_t length = std::min(piece, stream.size());
    if (!reader.consume(stream.first(length), side)) return false;
    stream = stream.subspan(length);
  }
  return true;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const bool is_server = input.take<uint8_t>() % 2 == 0;
  const size_t most = 1 + input.take<uint8_t>();
  const auto stream = input.bytes(size);
  Side whole(is_server);
  FrameReader reader;
  const bool is_accepted = reader.consume(stream, whole);
  Side cut(is_server);
  EGRET_CHECK(feed(cut, stream, most) == is_accepted);
  EGRET_CHECK(cut == whole);
  return 0;
}
