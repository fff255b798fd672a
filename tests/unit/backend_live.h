// A real egret-backend under test: the process, a client that behaves (rpc/), and a client that does as it likes.
#pragma once

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/slot_copy.h"
#include "base/unique_fd.h"
#include "op/hash.h"
#include "rpc/client_session.h"
#include "sanitized.h"
#include "transport/address.h"
#include "transport/shm_common.h"
#include "wire/bytes.h"
#include "wire/codec.h"
#include "wire/handshake.h"

namespace egret::backend {

using Seconds = std::chrono::duration<double>;
inline double now_seconds() {
  return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// True as soon as `condition` holds, within `seconds`.
inline bool eventually(const std::function<bool()>& condition, double seconds = 5) {
  for (const double end = now_seconds() + seconds; now_seconds() < end;) {
    if (condition()) return true;
    ::usleep(2000);
  }
  return condition();
}

inline bool is_readable(int fd, int timeout_ms) {
  pollfd wanted{fd, POLLIN, 0};
  return ::poll(&wanted, 1, timeout_ms) > 0;
}

// --- the process

class BackendProcess {
 public:
  // `config`: a file of options, for tests that reload it. `descriptors`: as many as it may have; 0: as this process.
  explicit BackendProcess(const std::vector<std::string>& settings = {}, const std::string& config = {},
                          rlim_t descriptors = 0) {
    static int count = 0;
    address = "shm:@egret-hostile-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
    char name[] = "/tmp/egret-hostile-XXXXXX";
    log_.reset(::mkstemp(name));
    REQUIRE(log_.is_open());
    log_path_ = name;
    std::vector<std::string> arguments = {EGRET_BACKEND,  "--set",        "listen=" + address,
                                          "--set",        "memory=16MiB", "--set",
                                          "partitions=3", "--set",        "pin=off"};
    if (!config.empty()) arguments.insert(arguments.end(), {"--config", config});
    for (const std::string& setting : settings) {
      arguments.emplace_back("--set");
      arguments.push_back(setting);
    }
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // whatever becomes of the test
      const rlimit few{descriptors, descriptors};
      if (descriptors > 0) ::setrlimit(RLIMIT_NOFILE, &few);
      ::dup2(log_.get(), STDERR_FILENO);
      ::setenv("ASAN_OPTIONS", "quarantine_size_mb=4", 1);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    REQUIRE_MESSAGE(eventually([&] { return transport::connect(address).is_ok(); }, 10), log());
  }
  ~BackendProcess() {
    if (pid > 0) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    ::unlink(log_path_.c_str());
  }

  bool is_alive() { return pid > 0 && ::waitpid(pid, nullptr, WNOHANG) == 0; }
  // Its exit status after SIGTERM; -1 when it had to be killed or died of a signal.
  int stop(double patience = 5) {
    ::kill(pid, SIGTERM);
    int status = 0;
    const bool ended = eventually([&] { return ::waitpid(pid, &status, WNOHANG) == pid; }, patience);
    if (!ended) return -1;
    pid = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  size_t open_fds() const {
    size_t fds = 0;
    std::error_code gone;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(proc("fd"), gone)) ++fds;
    return fds;
  }
  // Bytes that are its own: regions of sessions, which both sides map, are seen when they go.
  size_t resident() const {
    std::ifstream file(proc("statm"));
    size_t total = 0;
    size_t resident = 0;
    file >> total >> resident;
    return resident * 4096;
  }
  double cpu_seconds() const {
    std::ifstream file(proc("stat"));
    std::string word;
    for (int i = 0; i < 13; ++i) file >> word;
    double user = 0;
    double system = 0;
    file >> user >> system;
    return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
  std::string log() const {
    std::ifstream file(log_path_);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  std::string address;
  pid_t pid = -1;

 private:
  std::string proc(const char* what) const { return "/proc/" + std::to_string(pid) + "/" + what; }
  base::UniqueFd log_;
  std::string log_path_;
};

// --- a client that behaves

inline uint64_t random_id() {
  static std::mt19937_64 random(static_cast<uint64_t>(::getpid()) ^ static_cast<uint64_t>(std::time(nullptr)));
  return random();
}

// An honest worker: one session, one op at a time, spinning and sleeping as a worker does.
class GoodClient final : private rpc::SessionObserver, private rpc::Waiter {
 public:
  explicit GoodClient(const std::string& address, const base::Secret& secret = {}, const rpc::SessionOptions& asks = {})
      : epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        session_(options(address, secret, worker_id_, asks), clock_, *this, transport::connect) {
    session_.start();
  }

  bool opens(double seconds = 5) {
    return eventually(
        [&] {
          wait(10);
          return session_.is_open();
        },
        seconds);
  }
  // Waits until there is a session or it is said why there is none; true: there is none.
  bool is_refused(double seconds = 20) {
    eventually(
        [&] {
          wait(10);
          return session_.is_open() || !why_not_.empty();
        },
        seconds);
    return !session_.is_open();
  }
  rpc::ClientSession& session() { return session_; }
  uint64_t worker_id() const { return worker_id_; }

  // The result of one op on a key, or on a lane; kTimedOut when none came within five seconds.
  op::Result call(op::Op op, std::optional<uint32_t> lane = {}) {
    op.hash = session_.lanes().hash(op.key);
    result_ = {};
    result_.code = op::ResultCode::kTimedOut;
    answered_ = false;
    session_.begin_pass();
    rpc::ClientLane& target = lane ? session_.lanes()[*lane] : session_.lanes().of(op.hash);
    if (!target.append(op, this)) return result_;
    session_.flush();
    for (const double end = now_seconds() + 5; !answered_ && session_.is_open() && now_seconds() < end;) {
      session_.begin_pass();
      if (session_.fetch()) continue;
      if (!session_.should_spin() && session_.prepare_sleep()) wait(20);
    }
    return result_;
  }

  // Stores and reads back on every partition. Empty when all is well, else what was not.
  std::string trouble(const std::string& tag) {
    if (!session_.is_open() && !opens()) return "no session";
    for (int i = 0; i < 16; ++i) {
      const std::string key = "good:" + std::to_string(i);
      const std::string value = tag + ":" + std::to_string(i);
      op::Op set;
      set.code = op::OpCode::kSet;
      set.key = key;
      set.value = value;
      if (const auto code = call(set).code; code != op::ResultCode::kStored)
        return "set: " + std::string(to_string(code));
      op::Op get;
      get.code = op::OpCode::kGet;
      get.key = key;
      const op::Result got = call(get);
      if (got.code != op::ResultCode::kHit) return "get: " + std::string(to_string(got.code));
      if (value_ != value) return "get: '" + value_ + "' instead of '" + value + "'";
    }
    return "";
  }
  const std::string& value() const { return value_; }
  uint64_t sessions_lost() const { return lost_; }
  const std::string& why_not() const { return why_not_; }  // there was no session the last time there was none

 private:
  static rpc::SessionOptions options(const std::string& address, const base::Secret& secret, uint64_t worker_id,
                                     const rpc::SessionOptions& asks) {
    rpc::SessionOptions options = asks;
    options.address = address;
    options.secret = secret;
    options.worker_id = worker_id;
    return options;
  }
  void watch(int fd, uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }
  void wait(int timeout_ms) {
    epoll_event event{};
    if (::epoll_wait(epoll_.get(), &event, 1, timeout_ms) == 1) {
      if (session_.state() != rpc::ClientSession::State::kWaiting &&
          event.data.fd == session_.endpoint().control_fd()) {
        session_.on_control_ready();
      } else if (session_.is_open()) {
        session_.on_data_ready();
      }
    }
    session_.tick();
  }
  base::Status on_session_connecting(rpc::ClientSession& session) override {
    watch(session.endpoint().control_fd(), EPOLLIN);
    return base::Status::ok();
  }
  base::Status on_session_open(rpc::ClientSession& session) override {
    watch(session.endpoint().data_fd(), EPOLLIN | EPOLLET);
    return base::Status::ok();
  }
  void on_session_lost(rpc::ClientSession&, const std::string& why, bool was_open) override {
    lost_ += was_open ? 1 : 0;
    why_not_ = why;
  }
  void on_result(const op::Result& result) override {
    answered_ = true;
    result_ = result;
    value_ = result.value;
    result_.value = {};
  }

  base::SystemClock clock_;
  base::UniqueFd epoll_;
  const uint64_t worker_id_ = random_id();
  rpc::ClientSession session_;
  op::Result result_;
  std::string value_;
  bool answered_ = false;
  uint64_t lost_ = 0;
  std::string why_not_;
};

// --- a client that does as it likes

inline std::vector<std::byte> encode_ops(const std::vector<op::Op>& ops) {
  std::vector<std::byte> body;
  for (const op::Op& op : ops) {
    const size_t begin = body.size();
    body.resize(begin + wire::encoded_op_size(op));
    wire::encode_op(body.data() + begin, op);
  }
  return body;
}

// A session of which every byte is in the test's hands.
class RawSession {
 public:
  explicit RawSession(const std::string& address, uint64_t worker_id = random_id(), uint32_t window = 8) {
    auto connected = transport::connect(address);
    if (!connected) return;
    endpoint = std::move(connected.value());
    const wire::Hello hello{.features = 0, .worker_id = worker_id, .window = window};
    if (!endpoint->send_frame(encode(hello), false)) return;
    const std::vector<std::byte> frame = receive();
    if (!decode(frame, grant)) {
      wire::Refusal refused;
      if (decode(frame, refused)) refusal = refused.reason;
      return;
    }
    const transport::RegionShape shape{.lanes = grant.layout.lanes,
                                       .request_bytes = grant.layout.request_bytes(),
                                       .response_bytes = grant.layout.response_bytes(),
                                       .reply_bytes = grant.layout.response_slot_size};
    is_open = endpoint->map_region(shape).is_ok() && endpoint->send_frame(encode(wire::Ready{}), true).is_ok();
  }

  std::vector<std::byte> receive(int timeout_ms = 5000) const {
    std::vector<std::byte> frame(wire::kMaxFrame);
    size_t length = 0;
    if (!is_readable(endpoint->control_fd(), timeout_ms) || !endpoint->receive_frame(frame, length)) length = 0;
    frame.resize(length);
    return frame;
  }
  // The backend has hung up, or does so within that time.
  bool is_closed(int timeout_ms = 5000) const {
    std::vector<std::byte> frame(wire::kMaxFrame);
    size_t length = 0;
    return is_readable(endpoint->control_fd(), timeout_ms) && !endpoint->receive_frame(frame, length);
  }

  void end() { endpoint.reset(); }

  std::byte* slot(uint32_t lane, uint64_t seq) const {
    return endpoint->request_image() + grant.layout.request_offset(lane, seq);
  }
  const std::byte* response(uint32_t lane, uint64_t seq) const {
    return endpoint->response_image() + grant.layout.response_offset(lane, seq);
  }
  size_t body_room() const { return grant.layout.request_slot_size - sizeof(wire::RequestHeader); }

  // Writes a message whose seq and checksum are right, and rings.
  void write(uint32_t lane, uint64_t seq, std::span<const std::byte> body, uint16_t count) const {
    std::byte* at = slot(lane, seq);
    std::copy(body.begin(), body.end(), at + sizeof(wire::RequestHeader));
    wire::FieldWriter out(at + wire::kRequestChecked);
    out.put(static_cast<uint32_t>(body.size()));
    out.put(count);
    out.put(uint16_t{0});
    wire::FieldWriter(at + 8).put(
        wire::message_checksum(at + wire::kRequestChecked, 8 + body.size(), grant.nonce, seq));
    endpoint->stage_write(lane, grant.layout.request_offset(lane, seq), sizeof(wire::RequestHeader) + body.size(), seq);
    endpoint->flush();
    endpoint->ring(lane);
  }
  void write(uint32_t lane, uint64_t seq, const std::vector<op::Op>& ops) const {
    write(lane, seq, encode_ops(ops), static_cast<uint16_t>(ops.size()));
  }
  bool is_answered(uint32_t lane, uint64_t seq, double seconds = 5) const {
    return eventually([&] { return base::observe_word(response(lane, seq)) == seq; }, seconds);
  }
  // The codes of the results of an answered message; empty when the response is not well-formed.
  std::vector<op::ResultCode> codes(uint32_t lane, uint64_t seq) const {
    wire::ResponseHeader header{};
    std::memcpy(&header, response(lane, seq), sizeof header);
    if (header.length > grant.layout.response_slot_size - sizeof header) return {};
    wire::ResultReader reader(response(lane, seq) + sizeof header, header.length);
    std::vector<op::ResultCode> codes;
    for (op::Result result; codes.size() < header.result_count && reader.next(result);) codes.push_back(result.code);
    return codes.size() == header.result_count && reader.at_end() ? codes : std::vector<op::ResultCode>{};
  }
  // Sends one op and awaits its result's code.
  std::optional<op::ResultCode> call(uint32_t lane, uint64_t seq, const op::Op& op) const {
    write(lane, seq, {op});
    if (!is_answered(lane, seq) || codes(lane, seq).size() != 1) return {};
    return codes(lane, seq)[0];
  }
  uint32_t lane_of(std::string_view key) const {
    return op::partition_of(op::hash_key(key, grant.hash_seed), grant.layout.lanes);
  }

  std::unique_ptr<transport::ClientEndpoint> endpoint;
  wire::Grant grant;
  std::string refusal;
  bool is_open = false;
};

}  // namespace egret::backend
