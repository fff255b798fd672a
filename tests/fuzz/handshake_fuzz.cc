// Any bytes as a handshake frame: for the decoders, where a decoded frame encodes to the same fields; and for a
// ClientSession whose backend answers with them, where a session either opens with a valid layout or is lost with one
// line that says why. With a secret it opens only if the backend's own frames, unchanged, were among the input.
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "input.h"
#include "rpc/client_session.h"
#include "wire/handshake.h"
#include "wire/pool_frames.h"

namespace {

using namespace egret;
using fuzz::Input;
using wire::FrameType;

using Frame = std::vector<std::byte>;

bool is_printable(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

template <typename Body>
void decode_and_encode(std::span<const std::byte> frame) {
  Body body;
  if (!decode(frame, body)) return;
  const Frame again = encode(body);
  EGRET_CHECK(again.size() <= wire::kMaxFrame && again.size() <= frame.size());
  if constexpr (!std::is_same_v<Body, wire::Refusal>) {
    EGRET_CHECK(std::equal(again.begin() + 16, again.end(), frame.begin() + 16));
  } else {
    EGRET_CHECK(is_printable(body.reason));
  }
}

// Frames between a proxy and its slot clients. Reserved fields are not kept, so the bytes are compared after a second round.
template <typename Body>
void decode_and_encode_pool(std::span<const std::byte> frame) {
  Body body;
  if (!decode(frame, body)) return;
  const Frame again = encode(body);
  EGRET_CHECK(again.size() <= wire::kMaxPoolFrame && again.size() <= frame.size());
  Body same;
  EGRET_CHECK(decode(again, same) && encode(same) == again);
}

void check_decoders(std::span<const std::byte> frame) {
  FrameType type{};
  std::string error;
  const bool good = decode_prefix(frame, type, error);
  EGRET_CHECK(good == error.empty() && is_printable(error));
  EGRET_CHECK(!good || (frame.size() >= 16 && frame.size() <= wire::kMaxFrame));
  decode_and_encode<wire::Hello>(frame);
  decode_and_encode<wire::Challenge>(frame);
  decode_and_encode<wire::ClientProof>(frame);
  decode_and_encode<wire::Grant>(frame);
  decode_and_encode<wire::Refusal>(frame);
  decode_and_encode_pool<wire::Ask>(frame);
  decode_and_encode_pool<wire::PoolHead>(frame);
  decode_and_encode_pool<wire::MemberFrame>(frame);
  decode_and_encode_pool<wire::MemberStateFrame>(frame);
}

const base::Secret kSecret("0123456789abcdef");

// What the backend sends; the endpoint gives it out frame by frame. Some frames are made when it is their turn.
struct Sent {
  enum class Kind : uint8_t { kBytes, kChallenge, kGrant } kind = Kind::kBytes;
  Frame bytes;
};
std::deque<Sent> backend_sends;
wire::Transcript transcript;  // the honest backend's
bool sent_honest_grant = false;

// The frame itself, or, of an honest backend, the one that belongs there.
Frame made(const Sent& next) {
  if (next.kind == Sent::Kind::kChallenge) {
    Frame frame = encode(wire::Challenge{});
    transcript.add(frame);
    return frame;
  }
  if (next.kind == Sent::Kind::kBytes) return next.bytes;
  wire::Grant grant{.features = wire::kAuthenticate, .nonce = 1, .layout = {1, 2, 1024, 1024}};
  grant.proof = transcript.server_proof(kSecret, encode(grant));
  sent_honest_grant = true;
  return encode(grant);
}

class FakeEndpoint final : public transport::ClientEndpoint {
 public:
  int control_fd() const override { return -1; }
  base::Status receive_frame(std::span<std::byte> frame, size_t& length) override {
    length = 0;
    if (backend_sends.empty()) return base::Status::ok();
    const Frame next = made(backend_sends.front());
    backend_sends.pop_front();
    if (next.empty()) return base::Status::error("the peer is gone");
    length = std::min(next.size(), frame.size());
    std::copy_n(next.begin(), length, frame.begin());
    return base::Status::ok();
  }
  base::Status send_frame(std::span<const std::byte> frame, bool) override {
    FrameType type{};
    std::string error;
    EGRET_CHECK(decode_prefix(frame, type, error));
    EGRET_CHECK(type == FrameType::kHello || type == FrameType::kProof || type == FrameType::kReady);
    if (type == FrameType::kHello) {
      transcript.clear();
      transcript.add(frame);
      sent_honest_grant = false;
    }
    return base::Status::ok();
  }
  base::Status map_region(const transport::RegionShape& shape) override {
    if (shape.request_bytes > 1 << 20 || shape.response_bytes > 1 << 20)
      return base::Status::error("not of the agreed size");
    requests_.reset(new std::byte[shape.request_bytes]());
    responses_.reset(new std::byte[shape.response_bytes]());
    return base::Status::ok();
  }
  const transport::Limits& limits() const override { return limits_; }
  std::byte* request_image() override { return requests_.get(); }
  const std::byte* response_image() const override { return responses_.get(); }
  void stage_write(uint32_t, size_t, size_t, uint64_t) override {}
  void stage_ringing_write(uint32_t, size_t, size_t, uint64_t) override {}
  void stage_read(uint32_t, size_t, size_t, uint64_t) override {}
  void flush() override {}
  size_t poll(std::span<transport::Event>) override { return 0; }
  void ring(uint32_t) override {}
  int data_fd() const override { return -1; }
  void arm() override {}
  void close() override {}

 private:
  transport::Limits limits_{.read_depth = 16, .deliver_is_wakeup = true, .fetch_is_local = true};
  std::unique_ptr<std::byte[]> requests_;
  std::unique_ptr<std::byte[]> responses_;
};

struct Observer final : rpc::SessionObserver {
  explicit Observer(bool has_secret) : must_prove(has_secret) {}
  base::Status on_session_connecting(rpc::ClientSession&) override { return base::Status::ok(); }
  base::Status on_session_open(rpc::ClientSession& session) override {
    EGRET_CHECK(session.is_open() && session.grant().layout.is_valid());
    EGRET_CHECK(!must_prove || sent_honest_grant);
    EGRET_CHECK(must_prove == ((session.grant().features & wire::kAuthenticate) != 0));
    EGRET_CHECK(session.lanes().count() == session.grant().layout.lanes);
    // Every key has a lane.
    for (const char* key : {"a", "b", "c"})
      EGRET_CHECK(session.lanes().of(session.lanes().hash(key)).number() < session.lanes().count());
    ++opened;
    return base::Status::ok();
  }
  void on_session_lost(rpc::ClientSession&, const std::string& why, bool was_open) override {
    EGRET_CHECK(!why.empty() && is_printable(why));
    EGRET_CHECK(!was_open || opened > 0);
    ++lost;
  }
  const bool must_prove;
  int opened = 0;
  int lost = 0;
};

base::Expected<std::unique_ptr<transport::ClientEndpoint>> connect_fake(const std::string&,
                                                                        const transport::ConnectOptions&) {
  return std::unique_ptr<transport::ClientEndpoint>(std::make_unique<FakeEndpoint>());
}

void answer_client(Input& input, const base::Secret& secret) {
  backend_sends.clear();
  while (!input.at_end() && backend_sends.size() < 8) {
    if (secret.is_set() && input.take<uint8_t>() % 4 != 0) {
      const bool grants = input.take<uint8_t>() % 2 == 1;
      backend_sends.push_back({grants ? Sent::Kind::kGrant : Sent::Kind::kChallenge, {}});
      continue;
    }
    const auto bytes = input.bytes(input.take<uint8_t>() * 3u);
    Frame frame(bytes.begin(), bytes.end());
    // Half of them get a good prefix, or nothing would come far.
    if (frame.size() >= 16 && input.take<uint8_t>() % 2 == 0) {
      const Frame ready = encode(wire::Ready{});
      std::copy_n(ready.begin(), 10, frame.begin());
      const auto length = static_cast<uint32_t>(frame.size());
      std::memcpy(frame.data() + 12, &length, sizeof length);
    }
    backend_sends.push_back({Sent::Kind::kBytes, std::move(frame)});
  }
  base::ManualClock clock;
  Observer observer(secret.is_set());
  rpc::SessionOptions options;
  options.worker_id = 1;
  options.secret = secret;
  rpc::ClientSession session(options, clock, observer, connect_fake);
  session.start();
  for (int i = 0; i < 8; ++i) {
    if (session.state() != rpc::ClientSession::State::kWaiting) session.on_control_ready();
    clock.advance_ns(1'000'000'000);
    session.tick();
  }
  session.close();
  EGRET_CHECK(!session.is_open());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  Input input(data, size);
  const auto kind = input.take<uint8_t>() % 4;
  if (kind % 2 == 0) {
    check_decoders(input.bytes(size));
  } else {
    answer_client(input, kind == 1 ? base::Secret() : kSecret);
  }
  return 0;
}
