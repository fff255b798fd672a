// A memcached of its own: one thread that listens, parses every dialect, and executes all through egret.h alone. So the
// tests of tests/conformance, the random ones included, compare the C API with a real memcached (SUT=library).
//
//   bytes ─ memcache::ClientParser ─▶ egret_op … one batch ─▶ one of four ways ─▶ egret_result ─ memcache writers ─▶ bytes
//
// The ways take turns: egret_execute; egret_submit and egret_wait; egret_submit, egret_fd, egret_arm, egret_progress with a
// callback; and op by op, by the function of that name where there is one. SIGTERM ends it.
//
//   egret-client-front 127.0.0.1:PORT PATH NAME=VALUE ...     options of egret_options_set()
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "egret.h"
#include "memcache/answer.h"
#include "memcache/client_parser.h"
#include "memcache/reply.h"
#include "memcache/translate.h"

namespace {

using namespace egret;
using memcache::Command;
using memcache::CommandKind;
using memcache::Event;

constexpr size_t kMostCollected = 16 << 20;  // bytes of a value; a longer one is no item anyhow
constexpr size_t kMostOps = 512;             // of a batch

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "front: %s\n", what.c_str());
  std::exit(1);
}

// --- results

op::ResultCode code_of(int code, op::OpCode of) {
  if (code >= 0) return static_cast<op::ResultCode>(code);
  switch (code) {
    case EGRET_E_UNAVAILABLE:
      return op::ResultCode::kNotSent;
    case EGRET_E_UNKNOWN:
      return op::ResultCode::kSessionLost;
    case EGRET_E_MEMORY:
      return op::ResultCode::kOutOfMemory;
    case EGRET_E_DENIED:
      return op::ResultCode::kForbidden;
    default:
      std::fprintf(stderr, "front: code %d (%s) of op %d\n", code, egret_text(code), static_cast<int>(of));
      return op::ResultCode::kInvalid;
  }
}

std::string value_of(const egret_result& result) {
  return {static_cast<const char*>(result.value), result.value_length};
}

egret_result empty_result() {
  egret_result result{};
  result.size = sizeof result;
  return result;
}

// --- one request of a batch

struct Request {
  op::OpCode code{};
  egret_op op{};
  std::string key, value;
  egret_result result = empty_result();
  memcache::Question question;
};

// What goes out, in order: bytes, or a request's answer.
struct Place {
  std::string bytes;
  Request* request = nullptr;
  bool is_retrieval = false;  // of a classic one, or its end
  bool ends_retrieval = false;
};

// --- the four ways

class Ways {
 public:
  explicit Ways(egret_client* client) : client_(client) {}

  void run(std::deque<Request>& requests) {
    if (requests.empty()) return;
    switch (next_++ % 4) {
      case 0:
        return execute(requests);
      case 1:
        return submit_and_wait(requests);
      case 2:
        return submit_and_call_back(requests);
      default:
        for (Request& request : requests) one(request);
    }
  }

 private:
  void execute(std::deque<Request>& requests) {
    std::vector<egret_op> ops;
    for (const Request& request : requests) ops.push_back(request.op);
    std::vector<egret_result> results(ops.size(), empty_result());
    egret_execute(client_, ops.data(), ops.size(), results.data());
    for (size_t i = 0; i < results.size(); ++i) requests[i].result = results[i];
  }

  // Submits from `first` on; returns how many were taken.
  size_t submit(std::deque<Request>& requests, size_t first) {
    std::vector<egret_op> ops;
    for (size_t i = first; i < requests.size(); ++i) {
      requests[i].op.tag = i + 1;
      ops.push_back(requests[i].op);
    }
    const int taken = egret_submit(client_, ops.data(), ops.size());
    if (taken == EGRET_E_AGAIN) return 0;
    if (taken < 0) fail(std::string("egret_submit: ") + egret_text(taken) + ", " + egret_why(client_));
    return static_cast<size_t>(taken);
  }

  void submit_and_wait(std::deque<Request>& requests) {
    size_t sent = 0, done = 0;
    std::vector<egret_result> results(16, empty_result());
    while (done < requests.size()) {
      if (sent < requests.size()) sent += submit(requests, sent);
      const int count = egret_wait(client_, results.data(), results.size(), 1, -1);
      if (count < 0) fail("egret_wait");
      for (int i = 0; i < count; ++i)
        requests.at(results[static_cast<size_t>(i)].tag - 1).result = results[static_cast<size_t>(i)];
      done += static_cast<size_t>(count);
    }
    if (egret_pending(client_) != 0) fail("ops are under way that nobody has submitted");
  }

  struct Called {
    std::deque<Request>* requests;
    size_t done = 0;
  };
  static void on_result(void* user, egret_result* result) {
    auto& called = *static_cast<Called*>(user);
    ++called.done;
    called.requests->at(result->tag - 1).result = *result;
    result->view = nullptr;  // the copy is released
  }
  void submit_and_call_back(std::deque<Request>& requests) {
    Called called{&requests};
    egret_on_result(client_, on_result, &called);
    size_t sent = 0;
    while (called.done < requests.size()) {
      if (sent < requests.size()) sent += submit(requests, sent);
      egret_flush(client_);
      if (egret_arm(client_) == 0) {
        pollfd ready{egret_fd(client_), POLLIN, 0};
        ::poll(&ready, 1, -1);
      }
      if (egret_progress(client_) < 0) fail("egret_progress");
    }
    egret_on_result(client_, nullptr, nullptr);
  }

  // By the function of that name, where it can say all that the op does.
  void one(Request& request) {
    egret_op& op = request.op;
    egret_result* const result = &request.result;
    const uint32_t flags = op.flags & ~uint32_t{EGRET_F_STAYS};
    switch (request.code) {
      case op::OpCode::kGet:
        if (flags == EGRET_F_WANT_CAS) {
          egret_get(client_, op.key, op.key_length, result);
          return;
        }
        if (flags == (EGRET_F_WANT_CAS | EGRET_F_TOUCH)) {
          egret_gat(client_, op.key, op.key_length, op.exptime, result);
          return;
        }
        if (flags == (EGRET_F_NO_VALUE | EGRET_F_TOUCH)) {
          result->code = egret_touch(client_, op.key, op.key_length, op.exptime);
          return;
        }
        break;
      case op::OpCode::kSet:
        if ((flags == 0 || (flags == EGRET_F_COMPARE_CAS && op.cas != 0)) && op.vivify_exptime == 0) {
          const uint64_t cas = flags == 0 ? 0 : op.cas;
          if (op.mode == EGRET_MODE_SET && cas == 0) {
            result->code =
                egret_set(client_, op.key, op.key_length, op.value, op.value_length, op.exptime, op.client_flags);
          } else {
            egret_store(client_, op.mode, op.key, op.key_length, op.value, op.value_length, op.exptime, op.client_flags,
                        cas, result);
          }
          return;
        }
        break;
      case op::OpCode::kDelete:
        if (flags == 0) {
          result->code = egret_delete(client_, op.key, op.key_length, 0);
          return;
        }
        break;
      case op::OpCode::kArith:
        if (flags == 0 || flags == EGRET_F_DECREMENT) {
          result->code = flags == 0 ? egret_incr(client_, op.key, op.key_length, op.delta, &result->number)
                                    : egret_decr(client_, op.key, op.key_length, op.delta, &result->number);
          return;
        }
        break;
      default:
        break;
    }
    egret_execute(client_, &op, 1, result);
  }

  egret_client* const client_;
  unsigned next_ = 0;
};

// --- one connection

class Connection {
 public:
  Connection(int fd, egret_client* client, Ways& ways) : fd_(fd), client_(client), ways_(ways) {}
  ~Connection() { ::close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // False: it is over.
  bool on_ready() {
    char bytes[65536];
    while (!is_over_) {
      const ssize_t got = ::recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
      if (got <= 0) {
        is_over_ = true;
        break;
      }
      input_.append(bytes, static_cast<size_t>(got));
      feed();
    }
    while (!output_.empty()) {
      const ssize_t sent = ::send(fd_, output_.data(), output_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
      if (sent <= 0) break;
      output_.erase(0, static_cast<size_t>(sent));
    }
    return !is_over_ || !output_.empty();
  }
  bool has_output() const { return !output_.empty(); }
  int fd() const { return fd_; }

 private:
  void feed() {
    size_t used = 0;
    while (!is_over_) {
      const memcache::Step step = parser_.next(std::string_view(input_).substr(used), command_);
      if (step.event == Event::kNeedMore) {
        used += step.consumed;
        break;
      }
      act(step.event);
      used += step.consumed;
      if (requests_.size() >= kMostOps) settle();
    }
    input_.erase(0, used);
    settle();
  }

  void act(Event event) {
    switch (event) {
      case Event::kKey:
        add_request({});
        break;
      case Event::kEndOfKeys:
        places_.push_back({.bytes = std::string(memcache::kEnd), .is_retrieval = true, .ends_retrieval = true});
        break;
      case Event::kCommand:
        on_command();
        break;
      case Event::kValueBegin:
        collected_.clear();
        key_ = command_.key;
        echo_ = command_.echo;
        break;
      case Event::kValuePart:
        if (collected_.size() < kMostCollected) collected_.append(command_.value);
        break;
      case Event::kValueEnd:
        on_value_end();
        break;
      case Event::kError:
      case Event::kClose:
        places_.push_back({.bytes = std::string(command_.error)});
        if (event == Event::kClose) is_over_ = true;
        break;
      case Event::kNeedMore:
        break;
    }
  }

  void on_value_end() {
    if (!command_.terminator_ok) {
      if (!command_.noreply) places_.push_back({.bytes = std::string(memcache::kBadDataChunk)});
      return;
    }
    command_.key = key_;
    command_.echo = echo_;
    if (command_.value_length > kMostCollected) {
      collected_.clear();
      too_large_ = command_.value_length;
    }
    add_request(std::move(collected_));
    collected_ = {};
  }

  void on_command() {
    const CommandKind kind = command_.kind;
    if (memcache::needs_store(kind) && kind != CommandKind::kFlushAll) {
      return add_request(memcache::is_storage(kind) ? std::string(command_.value) : std::string());
    }
    if (kind == CommandKind::kFlushAll) {
      settle();
      answer_now(egret_flush_all(client_, command_.exptime));
    } else if (kind == CommandKind::kVersion && !parser_.is_binary()) {
      places_.push_back({.bytes = "VERSION 1.6.45\r\n"});
    } else if (kind == CommandKind::kNoop && !parser_.is_binary()) {
      places_.push_back({.bytes = std::string(memcache::kMetaNoop)});
    } else if (kind == CommandKind::kQuit) {
      if (parser_.is_binary()) answer_now(EGRET_OK);
      is_over_ = true;
    } else if (kind == CommandKind::kVerbosity || kind == CommandKind::kNoop) {
      answer_now(EGRET_OK);
    } else if (parser_.is_binary()) {
      packet(kind);
    } else {
      places_.push_back({.bytes = std::string(memcache::kErrorLine)});
    }
  }

  void packet(CommandKind kind) {
    memcache::Question question;
    memcache::ask(command_, 0, question);
    const bool is_known = kind == CommandKind::kVersion;
    const std::string_view body = is_known ? "1.6.45" : "Unknown command";
    std::string bytes(memcache::max_packet(body), '\0');
    const auto status = is_known ? memcache::binary::Status::kOk : memcache::binary::Status::kUnknownCommand;
    bytes.resize(static_cast<size_t>(memcache::write_packet(bytes.data(), question, status, body) - bytes.data()));
    places_.push_back({.bytes = std::move(bytes)});
  }

  // Of what needs no key, or is done already.
  void answer_now(int code) {
    memcache::Question question;
    memcache::ask(command_, 0, question);
    op::Result result;
    result.code = code_of(code, op::OpCode::kFlush);
    std::string bytes(memcache::max_answer(question, 0), '\0');
    bytes.resize(static_cast<size_t>(memcache::write_answer(bytes.data(), question, {}, result) - bytes.data()));
    places_.push_back({.bytes = std::move(bytes)});
  }

  void add_request(std::string value) {
    Request& request = requests_.emplace_back();
    const op::Op op = memcache::to_op(command_);
    memcache::ask(command_, op.options, request.question);
    request.code = op.code;
    request.key = op.key;
    request.value = std::move(value);
    egret_op& given = request.op;
    given.size = sizeof given;
    given.flags = op.options;
    given.code = static_cast<uint8_t>(op.code);
    given.mode = static_cast<uint8_t>(op.mode);
    given.client_flags = op.client_flags;
    given.key = request.key.data();
    given.key_length = request.key.size();
    given.value = request.value.data();
    given.value_length = request.value.size();
    if (too_large_ > 0) {  // nobody reads it
      static void* const bytes =
          ::mmap(nullptr, size_t{4} << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      given.value = bytes;
      given.value_length = std::exchange(too_large_, 0);
    }
    if (requests_.size() % 3 == 0) given.flags |= EGRET_F_STAYS;
    given.exptime = op.exptime;
    given.vivify_exptime = op.vivify_exptime;
    given.recache_below = op.recache_below;
    given.cas = op.cas;
    given.new_cas = op.new_cas;
    given.delta = op.delta;
    given.initial = op.initial;
    const bool is_retrieval = memcache::is_retrieval(command_.kind) && request.question.is_classic();
    places_.push_back({.bytes = {}, .request = &request, .is_retrieval = is_retrieval});
  }

  // Executes what has gathered, and writes the answers.
  void settle() {
    ways_.run(requests_);
    std::string retrieval;  // that is being written
    bool has_failed = false;
    for (const Place& place : places_) {
      std::string& to = place.is_retrieval ? retrieval : output_;
      if (place.request != nullptr) {
        if (!answer(*place.request, to) && place.is_retrieval) has_failed = true;
      } else if (!has_failed) {
        to += place.bytes;
      }
      if (place.ends_retrieval) {
        output_ += std::exchange(retrieval, {});
        has_failed = false;
      }
    }
    output_ += retrieval;  // its end is yet to come
    for (Request& request : requests_) egret_release(&request.result);
    requests_.clear();
    places_.clear();
  }

  // False: a classic retrieval has failed; `to` is the line for all of it.
  bool answer(const Request& request, std::string& to) {
    const egret_result& from = request.result;
    op::Result result;
    result.code = code_of(from.code, request.code);
    result.client_flags = from.client_flags;
    result.cas = from.cas;
    result.number = from.number;
    result.marks = from.marks;
    result.last_access = from.last_access;
    result.ttl = from.ttl;
    const bool is_hit = from.code == EGRET_HIT;
    result.total_length = static_cast<uint32_t>(is_hit && from.value_length == 0 ? from.number : from.value_length);
    const memcache::Question& question = request.question;
    const bool is_retrieval = memcache::is_retrieval(question.kind) && question.is_classic();
    if (const std::string_view line = memcache::retrieval_error(result); is_retrieval && !line.empty()) {
      to = line;
      return false;
    }
    const bool has_value = is_hit && memcache::has_value(question, result);
    const size_t room = has_value ? memcache::max_head(question, request.key.size())
                                  : memcache::max_answer(question, request.key.size());
    std::string bytes(room, '\0');
    char* const end = has_value ? memcache::write_head(bytes.data(), question, request.key, result, result.total_length)
                                : memcache::write_answer(bytes.data(), question, request.key, result);
    bytes.resize(static_cast<size_t>(end - bytes.data()));
    to += bytes;
    if (!has_value) return true;
    to += value_of(from);
    to += memcache::tail(question);
    return true;
  }

  const int fd_;
  egret_client* const client_;
  Ways& ways_;
  memcache::ClientParser parser_{memcache::Limits{}};
  Command command_;
  std::string input_, output_, collected_;
  std::string key_, echo_;  // of the command whose value is collected
  size_t too_large_ = 0;    // length of a value that was not collected
  std::deque<Request> requests_;
  std::vector<Place> places_;
  bool is_over_ = false;
};

// --- sockets

int listen_at(int family, const sockaddr* address, socklen_t length) {
  const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (fd < 0 || ::bind(fd, address, length) != 0 || ::listen(fd, 1024) != 0)
    fail(std::string("listen: ") + std::strerror(errno));
  return fd;
}

int listen_tcp(const std::string& text) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(text.substr(text.rfind(':') + 1))));
  ::inet_pton(AF_INET, text.substr(0, text.rfind(':')).c_str(), &address.sin_addr);
  return listen_at(AF_INET, reinterpret_cast<sockaddr*>(&address), sizeof address);
}

int listen_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return listen_at(AF_UNIX, reinterpret_cast<sockaddr*>(&address), sizeof address);
}

egret_client* make_client(int argc, char** argv) {
  egret_options* const options = egret_options_new();
  for (int i = 3; i < argc; ++i) {
    const std::string pair = argv[i];
    const size_t equals = pair.find('=');
    if (egret_options_set(options, pair.substr(0, equals).c_str(), pair.substr(equals + 1).c_str()) != EGRET_OK) {
      fail(egret_options_error(options));
    }
  }
  egret_pool* pool = nullptr;
  egret_client* client = nullptr;
  if (egret_pool_open(options, &pool) != EGRET_OK) fail("egret_pool_open");
  if (egret_client_new(pool, &client) != EGRET_OK) fail("egret_client_new");
  egret_options_free(options);
  egret_pool_close(pool);
  return client;
}

void serve(int argc, char** argv) {
  egret_client* const client = make_client(argc, argv);
  Ways ways(client);
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  const auto watch = [epoll](int fd, uint32_t events, int how) {
    epoll_event event{.events = events, .data = {.fd = fd}};
    ::epoll_ctl(epoll, how, fd, &event);
  };
  const int listeners[] = {listen_tcp(argv[1]), listen_unix(argv[2])};
  for (const int fd : listeners) watch(fd, EPOLLIN, EPOLL_CTL_ADD);
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &ends, nullptr);
  const int signals = ::signalfd(-1, &ends, SFD_CLOEXEC);
  watch(signals, EPOLLIN, EPOLL_CTL_ADD);
  std::unordered_map<int, std::unique_ptr<Connection>> connections;
  for (;;) {
    epoll_event events[64];
    const int count = ::epoll_wait(epoll, events, 64, -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == signals) return egret_client_free(client);
      if (fd == listeners[0] || fd == listeners[1]) {
        const int accepted = ::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (accepted < 0) continue;
        connections[accepted] = std::make_unique<Connection>(accepted, client, ways);
        watch(accepted, EPOLLIN, EPOLL_CTL_ADD);
      } else if (const auto at = connections.find(fd); at != connections.end()) {
        if (!at->second->on_ready()) {
          connections.erase(at);
        } else {
          watch(fd, at->second->has_output() ? EPOLLIN | EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
        }
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) fail("egret-client-front 127.0.0.1:PORT PATH NAME=VALUE ...");
  egret_log([](void*, int, const char* line) { std::fprintf(stderr, "front: %s\n", line); }, nullptr);
  serve(argc, argv);
  return 0;
}
