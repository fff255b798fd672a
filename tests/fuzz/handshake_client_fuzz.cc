// A real ClientSession over a real socket, and a backend that says anything: frames whole, damaged and made up, in any
// order, grants with any layout and descriptors of any kind, responses of any bytes. What must hold: a session opens only
// with a layout that is valid, and where there is a secret only with its proof; its end is told with a line that can be
// printed; no call of the session waits for what the backend has sent (the fuzzer's own time limit).
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "handshake_script.h"
#include "rpc/client_session.h"
#include "transport/address.h"
#include "transport/shm_common.h"

namespace {

using namespace egret;
using namespace egret::fuzz;

const base::Secret kSecret("the secret of this fuzzer");
constexpr const char* kKeys[] = {"a", "key", "another key"};

class FakeBackend {
 public:
  FakeBackend() : address("shm:@egret-fuzz-client-" + std::to_string(::getpid())) {
    std::signal(SIGPIPE, SIG_IGN);  // as the daemons do
    auto listening = transport::listen(address, {});
    EGRET_CHECK(listening.is_ok());
    listener_ = std::move(listening.value());
  }

  void begin() {
    endpoint_.reset();
    transcript_.clear();
    has_sent_proof = false;
  }
  // One step of the script.
  void step(Input& input, const base::Secret& secret) {
    accept();
    if (endpoint_ == nullptr) return;
    hear();
    switch (input.take<uint8_t>() % 8) {
      case 0:
        return say(raw(input), input);
      case 1:
      case 2:
        return challenge(input);
      case 3:
      case 4:
        return grant(input, secret);
      case 5:
        return say(encode(wire::Refusal{std::string(input.take<uint8_t>(), input.take<char>())}), input);
      case 6:
        return say(damaged(encode(wire::Grant{.layout = {1, 2, 1024, 1024}}), input), input);
      default:
        return publish(input);
    }
  }
  void hang_up() { endpoint_.reset(); }

  const std::string address;
  bool has_sent_proof = false;  // of the secret, whole

 private:
  void accept() {
    auto accepted = listener_->accept();
    if (!accepted || accepted.value() == nullptr) return;
    begin();
    endpoint_ = std::move(accepted.value());
  }
  void hear() {
    Frame frame(wire::kMaxFrame);
    for (size_t length = 1; length > 0;) {
      if (!endpoint_->receive_frame(frame, length)) return;
      wire::FrameType type{};
      std::string error;
      const auto heard = std::span(frame).first(length);
      if (length == 0) return;
      EGRET_CHECK(decode_prefix(heard, type, error));
      EGRET_CHECK(type == wire::FrameType::kHello || type == wire::FrameType::kProof ||
                  type == wire::FrameType::kReady);
      if (type == wire::FrameType::kHello) transcript_.add(heard);
    }
  }
  void say(const Frame& frame, Input& input, size_t bytes = 4096) {
    std::vector<Descriptor> descriptors;
    std::vector<int> numbers;
    const auto with = input.take<uint8_t>();
    if (with % 4 != 0) {
      // Mostly as many as a grant has.
      const size_t count = with % 16 == 1 ? with / 16 : size_t{transport::shm::kRegionFds};
      for (size_t i = 0; i < count; ++i) descriptors.emplace_back(input, bytes);
      for (const Descriptor& each : descriptors) numbers.push_back(each.get());
    }
    send_with(endpoint_->control_fd(), frame, numbers);
  }
  void challenge(Input& input) {
    const Frame frame = encode(wire::Challenge{});
    transcript_.add(frame);
    say(frame, input);
  }
  // Honest in all but what the input changes: the layout, the proof, the region.
  void grant(Input& input, const base::Secret& secret) {
    const auto changes = input.take<uint8_t>();
    wire::Grant granted{.features = secret.is_set() ? wire::kAuthenticate : 0,
                        .session_id = 1,
                        .nonce = 2,
                        .epoch = 3,
                        .hash_seed = 4,
                        .item_size_max = 1 << 20,
                        .layout = {1, 2, 1024, 1024}};
    if (changes % 2 == 1)
      granted.layout = {input.take<uint16_t>(), input.take<uint8_t>(), input.take<uint16_t>(), input.take<uint16_t>()};
    if (changes % 4 >= 2) granted.features |= wire::kOrderedMemory;
    const bool has_timers = changes >= 64;
    if (has_timers) granted.features |= wire::kWakeTimers;
    const bool has_rings = (changes & 32) != 0;
    if (has_rings) granted.features |= wire::kLaneRings;
    Frame frame = encode(granted);
    const bool has_proof = secret.is_set() && changes % 16 < 12;
    if (has_proof) {
      granted.proof = transcript_.server_proof(secret, frame);
      frame = encode(granted);
      has_sent_proof = true;
    }
    const transport::RegionShape shape{.lanes = granted.layout.lanes,
                                       .request_bytes = granted.layout.request_bytes(),
                                       .response_bytes = granted.layout.response_bytes(),
                                       .reply_bytes = granted.layout.response_slot_size,
                                       .has_wake_timers = has_timers,
                                       .has_lane_rings = has_rings};
    const bool is_small = granted.layout.is_valid() && granted.layout.bytes() <= 1 << 20;
    if (changes % 32 < 20 && is_small && endpoint_->response_memory() == nullptr && endpoint_->create_region(shape)) {
      static_cast<void>(endpoint_->send_frame(frame, true));
      response_bytes_ = shape.response_bytes;
      return;
    }
    if (is_small && changes % 32 < 28) return give_half(frame, granted.layout, shape, input);
    say(frame, input,
        input.take<uint8_t>() % 2 == 0 ? transport::shm::request_file_bytes(shape) : shape.response_bytes);
  }
  // Every lane says that it is asleep.
  static void put_to_sleep(std::vector<std::byte>& responses, const wire::RegionLayout& layout) {
    for (uint32_t lane = 0; lane < layout.lanes; ++lane) {
      for (uint64_t seq = 1; seq <= layout.window; ++seq) {
        std::memcpy(responses.data() + layout.response_offset(lane, seq) + offsetof(wire::ResponseHeader, asleep), &seq,
                    sizeof seq);
      }
    }
  }
  // Memory as it should be, of lanes that are asleep, so that the session rings; and wake-ups of any kind.
  void give_half(const Frame& frame, const wire::RegionLayout& layout, const transport::RegionShape& shape,
                 Input& input) {
    std::vector<std::byte> responses(shape.response_bytes);
    put_to_sleep(responses, layout);
    std::vector<Descriptor> descriptors;
    descriptors.emplace_back(std::span<const std::byte>(), transport::shm::request_file_bytes(shape));
    descriptors.emplace_back(responses, shape.response_bytes);
    while (descriptors.size() < transport::shm::kRegionFds) descriptors.emplace_back(input, 4096);
    std::vector<int> numbers;
    for (const Descriptor& each : descriptors) numbers.push_back(each.get());
    send_with(endpoint_->control_fd(), frame, numbers);
  }
  // Anything, where the session looks for responses; and wakes it.
  void publish(Input& input) {
    if (endpoint_->response_memory() == nullptr) return;
    const auto bytes = input.bytes(input.take<uint8_t>());
    const size_t at = input.take<uint16_t>() % response_bytes_;
    std::copy_n(bytes.begin(), std::min(bytes.size(), response_bytes_ - at), endpoint_->response_memory() + at);
    endpoint_->deliver(0, 0, 0);
  }

  std::unique_ptr<transport::Listener> listener_;
  std::unique_ptr<transport::ServerEndpoint> endpoint_;
  wire::Transcript transcript_;
  size_t response_bytes_ = 0;
};

FakeBackend& backend() {
  static auto* const instance = new FakeBackend;
  return *instance;
}

// The session under test, and who asks it.
class Client final : private rpc::SessionObserver, private rpc::Waiter {
 public:
  explicit Client(const base::Secret& secret)
      : must_prove_(secret.is_set()), session_(options(secret), clock_, *this, transport::connect) {
    session_.start();
  }
  ~Client() {
    session_.close();
    EGRET_CHECK(!session_.is_open() && answered_ == asked_);
  }

  // What a worker does in a pass.
  void pass(Input& input) {
    if (session_.state() != rpc::ClientSession::State::kWaiting && is_readable(session_.endpoint().control_fd(), 0)) {
      session_.on_control_ready();
    }
    if (session_.is_open()) ask(input.take<uint8_t>());
    if (session_.is_open()) session_.fetch();
    if (session_.is_open()) session_.prepare_sleep();
    clock_.advance_ns(input.take<uint8_t>() * 4'000'000ull);
    session_.tick();
  }

 private:
  static rpc::SessionOptions options(const base::Secret& secret) {
    rpc::SessionOptions options;
    options.address = backend().address;
    options.worker_id = 1;
    options.secret = secret;
    return options;
  }
  void ask(uint8_t what) {
    session_.begin_pass();
    op::Op op;
    op.code = what % 2 == 0 ? op::OpCode::kGet : op::OpCode::kSet;
    op.key = kKeys[what % 3];
    if (op.code == op::OpCode::kSet) op.value = "value";
    op.hash = session_.lanes().hash(op.key);
    if (session_.lanes().of(op.hash).append(op, this)) ++asked_;
    session_.flush();
  }
  void on_result(const op::Result& result) override {
    ++answered_;
    // The value lies where it can be read, whatever the backend has written there.
    sum_ += result.value.empty() ? 0 : static_cast<unsigned char>(result.value.front()) + result.value.back();
  }
  base::Status on_session_connecting(rpc::ClientSession&) override { return base::Status::ok(); }
  base::Status on_session_open(rpc::ClientSession& session) override {
    EGRET_CHECK(session.is_open() && session.grant().layout.is_valid());
    EGRET_CHECK(!must_prove_ || backend().has_sent_proof);
    return base::Status::ok();
  }
  void on_session_lost(rpc::ClientSession&, const std::string& why, bool) override {
    EGRET_CHECK(!why.empty() && is_printable(why));
  }

  const bool must_prove_;
  base::ManualClock clock_;
  uint64_t asked_ = 0;
  uint64_t answered_ = 0;
  uint64_t sum_ = 0;
  rpc::ClientSession session_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const base::Secret secret = input.take<uint8_t>() % 2 == 0 ? kSecret : base::Secret();
  backend().begin();
  {
    Client client(secret);
    for (int steps = 0; !input.at_end() && steps < 32; ++steps) {
      backend().step(input, secret);
      client.pass(input);
    }
    backend().hang_up();
    client.pass(input);
  }
  return 0;
}
