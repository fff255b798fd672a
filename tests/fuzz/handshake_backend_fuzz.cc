// A real backend (its control thread, two partitions, the socket it listens on) and a client that says anything: frames
// whole, damaged and made up, in any order, with descriptors of any kind, on connections that end at any moment. What
// must hold: nobody is granted a session without the proof of the secret; what the backend says can be read; and an honest
// client beside it is served all the while, and gets new sessions.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <sys/stat.h>

#include "backend/config.h"
#include "backend/control.h"
#include "backend/mailbox.h"
#include "backend/open_stores.h"
#include "backend/option_table.h"
#include "backend/partition.h"
#include "base/clock.h"
#include "base/log/log.h"
#include "base/random.h"
#include "handshake_script.h"
#include "rpc/client_session.h"
#include "transport/address.h"
#include "transport/shm_common.h"
#include "transport/shm_wakeup.h"

namespace {

using namespace egret;
using namespace egret::fuzz;

constexpr const char* kSecretText = "the secret of this fuzzer";
const base::Secret kSecret(kSecretText);
constexpr int kPatienceMs = 20'000;  // far more than any of the backend's time limits

// Runs until the process ends.
class Backend {
 public:
  Backend() : address("shm:@egret-fuzz-" + std::to_string(::getpid())) {
    std::signal(SIGPIPE, SIG_IGN);  // as the daemon does
    const std::string file = "/tmp/egret-fuzz-secret-" + std::to_string(::getpid());
    std::ofstream(file) << kSecretText;
    EGRET_CHECK(::chmod(file.c_str(), 0600) == 0);
    const std::vector<std::string> settings = {"listen=" + address, "memory=16MiB",        "partitions=2", "pin=off",
                                               "populate=false",    "secret_file=" + file, "admin="};
    base::Options options = base::Options::load(backend::option_table(), std::nullopt, settings).value();
    config_ = std::make_unique<backend::Config>(backend::resolve_config(options).value());
    ::unlink(file.c_str());
    base::set_log_level(base::LogLevel::kError);
    reloader_ = std::make_unique<base::Reloader>(base::OptionSources{}, std::move(options), nullptr);
    mailboxes_ = std::make_unique<backend::Mailboxes>(config_->partitions + 1);
    const backend::Identity identity{.epoch = 1, .hash_seed = 2};
    control_ = std::make_unique<backend::Control>(*config_, identity, *mailboxes_, *reloader_);
    const base::Status listening = control_->listen();
    EGRET_CHECK(listening.is_ok());
    auto executors = backend::open_stores(*config_, identity.hash_seed, clock_);
    EGRET_CHECK(executors.is_ok());
    for (uint32_t number = 0; number < config_->partitions; ++number) {
      partitions_.push_back(std::make_unique<backend::Partition>(
          backend::PartitionOptions{.number = number, .polling = {.lane_idle_ns = 1, .far_lane_idle_ns = 1}}, clock_,
          *mailboxes_, std::move(executors.value()[number])));
      partitions_.back()->start();
    }
    std::thread([this] { EGRET_CHECK(control_->run().is_ok()); }).detach();
  }

  const std::string address;

 private:
  base::SystemClock clock_;
  std::unique_ptr<backend::Config> config_;
  std::unique_ptr<base::Reloader> reloader_;
  std::unique_ptr<backend::Mailboxes> mailboxes_;
  std::unique_ptr<backend::Control> control_;
  std::vector<std::unique_ptr<backend::Partition>> partitions_;
};

// The innocent one: a session that sets and gets.
class Bystander final : private rpc::SessionObserver, private rpc::Waiter {
 public:
  explicit Bystander(const std::string& address) : session_(options(address), clock_, *this, transport::connect) {
    session_.start();
  }
  ~Bystander() { session_.close(); }

  void must_be_served() {
    until([&] { return session_.is_open(); });
    const std::string value = std::to_string(++turn_);
    op::Op op;
    op.code = op::OpCode::kSet;
    op.key = "bystander";
    op.value = value;
    EGRET_CHECK(result_of(op) == op::ResultCode::kStored);
    op.code = op::OpCode::kGet;
    op.value = {};
    EGRET_CHECK(result_of(op) == op::ResultCode::kHit && value_ == value);
  }

 private:
  static rpc::SessionOptions options(const std::string& address) {
    rpc::SessionOptions options;
    options.address = address;
    options.secret = kSecret;
    options.worker_id = base::random_u64() | 1 << 16;  // none of the fuzzer's own
    return options;
  }
  template <typename Condition>
  void until(const Condition& condition) {
    const uint64_t end = clock_.now_ns() + uint64_t{kPatienceMs} * 1'000'000;
    while (!condition()) {
      EGRET_CHECK(clock_.now_ns() < end);
      if (session_.state() == rpc::ClientSession::State::kHandshaking) {
        if (is_readable(session_.endpoint().control_fd(), 1)) session_.on_control_ready();
      } else if (session_.is_open()) {
        session_.begin_pass();
        session_.fetch();
        std::this_thread::yield();
      } else {
        ::usleep(1000);
      }
      session_.tick();
    }
  }
  op::ResultCode result_of(op::Op& op) {
    op.hash = session_.lanes().hash(op.key);
    answered_ = false;
    session_.begin_pass();
    EGRET_CHECK(session_.lanes().of(op.hash).append(op, this));
    session_.flush();
    until([&] { return answered_; });
    return code_;
  }
  void on_result(const op::Result& result) override {
    answered_ = true;
    code_ = result.code;
    value_ = result.value;
  }
  base::Status on_session_connecting(rpc::ClientSession&) override { return base::Status::ok(); }
  base::Status on_session_open(rpc::ClientSession&) override { return base::Status::ok(); }
  void on_session_lost(rpc::ClientSession&, const std::string&, bool) override {}

  base::SystemClock clock_;
  uint64_t turn_ = 0;
  bool answered_ = false;
  op::ResultCode code_{};
  std::string value_;
  rpc::ClientSession session_;
};

// One connection of the fuzzer.
class Knock {
 public:
  explicit Knock(const std::string& address) {
    sockaddr_un at{};
    socklen_t length = 0;
    EGRET_CHECK(transport::shm::to_socket_address(address.substr(4), at, length).is_ok());
    socket_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    [[maybe_unused]] const int connected = ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&at), length);
  }

  // One step of the script.
  void step(Input& input) {
    switch (input.take<uint8_t>() % 10) {
      case 0:
        return say(raw(input), input);
      case 1:
      case 2:
        return say_hello(input);
      case 3:
      case 4:
        return prove(input);
      case 5:
        return say(encode(wire::Ready{}), input);
      case 6:
        return say(damaged(input.take<uint8_t>() % 2 == 0 ? hello(input) : encode(wire::ClientProof{}), input), input);
      case 7:
        hear(0);
        return;
      case 8:
        ::shutdown(socket_.get(), input.take<uint8_t>() % 2 == 0 ? SHUT_WR : SHUT_RDWR);
        return;
      default:
        return scribble(input);
    }
  }

 private:
  static Frame hello(Input& input) {
    return encode(wire::Hello{.features = input.take<uint8_t>() % 8 == 0
                                              ? input.take<uint64_t>()
                                              : wire::kAuthenticate | (input.take<uint8_t>() % 8),
                              .worker_id = input.take<uint8_t>() % 4u,
                              .window = input.take<uint8_t>(),
                              .nonce = {}});
  }
  void say(const Frame& frame, Input& input) {
    std::vector<Descriptor> descriptors;
    std::vector<int> numbers;
    if (input.take<uint8_t>() % 8 == 0) {
      for (int count = 1 + input.take<uint8_t>() % 8; count > 0; --count) descriptors.emplace_back(input, 4096);
      for (const Descriptor& each : descriptors) numbers.push_back(each.get());
    }
    send_with(socket_.get(), frame, numbers);
  }
  void say_hello(Input& input) {
    const Frame frame = hello(input);
    transcript_.clear();
    transcript_.add(frame);
    has_challenge_ = false;
    say(frame, input);
    hear(20);
  }
  void prove(Input& input) {
    wire::ClientProof proof{transcript_.client_proof(kSecret)};
    const bool is_wrong = input.take<uint8_t>() % 4 == 0;
    if (is_wrong) proof.proof[input.take<uint8_t>() % proof.proof.size()] ^= std::byte{1};
    has_proved_ |= has_challenge_ && !is_wrong;
    say(encode(proof), input);
    hear(20);
  }
  // Everything that the backend has said, and says within that time.
  void hear(int milliseconds) {
    while (is_readable(socket_.get(), milliseconds)) {
      std::vector<base::UniqueFd> descriptors;
      Frame frame(wire::kMaxFrame);
      size_t length = 0;
      if (!transport::shm::receive(socket_.get(), frame, length, descriptors) || length == 0) return;
      frame.resize(length);
      take(frame);
      if (!descriptors.empty()) region_ = std::move(descriptors);
      milliseconds = 0;
    }
  }
  void take(const Frame& frame) {
    wire::FrameType type{};
    std::string error;
    EGRET_CHECK(decode_prefix(frame, type, error));
    if (type == wire::FrameType::kChallenge) {
      transcript_.add(frame);
      has_challenge_ = true;
    } else if (type == wire::FrameType::kGrant) {
      wire::Grant grant;
      EGRET_CHECK(decode(frame, grant) && grant.layout.is_valid());
      EGRET_CHECK(has_proved_);
      EGRET_CHECK(wire::is_equal(grant.proof, transcript_.server_proof(kSecret, frame)));
    } else {
      wire::Refusal refusal;
      EGRET_CHECK(type == wire::FrameType::kRefusal && decode(frame, refusal) && is_printable(refusal.reason));
    }
  }
  // Whoever has been granted a session writes anything into its request memory, and signals.
  void scribble(Input& input) {
    if (region_.empty()) return;
    const auto bytes = input.bytes(input.take<uint8_t>());
    const off_t at = input.take<uint16_t>();
    [[maybe_unused]] const ssize_t written = ::pwrite(region_[0].get(), bytes.data(), bytes.size(), at);
    for (const base::UniqueFd& each : region_) {
      const uint64_t one = 1;
      if (&each == region_.data()) continue;
      transport::shm::signal_timer(each.get());
      [[maybe_unused]] const ssize_t signalled = ::write(each.get(), &one, sizeof one);
    }
  }

  base::UniqueFd socket_;
  wire::Transcript transcript_;
  bool has_challenge_ = false;
  bool has_proved_ = false;
  std::vector<base::UniqueFd> region_;  // granted: memory first, then wake-ups
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const backend = new Backend;
  static auto* bystander = new Bystander(backend->address);
  static uint64_t inputs = 0;
  Input input(data, size);
  std::vector<std::unique_ptr<Knock>> knocks;
  for (int steps = 0; !input.at_end() && steps < 24; ++steps) {
    const auto which = input.take<uint8_t>();
    if (knocks.empty() || (which % 4 == 0 && knocks.size() < 4))
      knocks.push_back(std::make_unique<Knock>(backend->address));
    knocks[which % knocks.size()]->step(input);
  }
  knocks.clear();
  if (++inputs % 16 == 0) bystander->must_be_served();
  if (inputs % 256 == 0) {
    delete bystander;
    bystander = new Bystander(backend->address);
    bystander->must_be_served();
  }
  return 0;
}
