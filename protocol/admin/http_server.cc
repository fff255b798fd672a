#include "admin/http_server.h"

#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <list>
#include <map>
#include <system_error>
#include <utility>

#include <microhttpd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/host_check.h"
#include "admin/log_events.h"
#include "admin/unix_relay.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/local/peer_socket.h"
#include "base/log/log.h"
#include "base/unique_fd.h"

namespace egret::admin {

using base::Status;
using base::UniqueFd;
using events::Event;

namespace {

constexpr size_t kHardLimit = 2 * HttpServer::kMaxConnections;  // including connections that are being closed
constexpr int kAcceptsPerEvent = 16;
constexpr std::chrono::milliseconds kAcceptPause{200};  // when no descriptor is free
constexpr std::chrono::seconds kSweepEvery{1};
constexpr std::string_view kStopping = "stopping\n";
constexpr std::string_view kWrongHost =
    "the Host header must be an IP address, localhost or a name that the option admin_hosts lists\n";
constexpr uint64_t kSecondNs = 1'000'000'000;

void log_trouble(void*, const char* format, va_list arguments) {
  if (!base::is_logged(base::LogLevel::kDebug)) return;
  char text[256];
  std::vsnprintf(text, sizeof text, format, arguments);
  base::log(kAdminHttp, "admin address: {}", text);
}

MHD_Response* make_response(const Answer& answer, std::string_view policy) {
  // Copied, since `answer` may be destroyed before the client has read all of it.
  MHD_Response* const response =
      MHD_create_response_from_buffer(answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
  EGRET_CHECK(response != nullptr);
  const std::pair<const char*, std::string> headers[] = {{MHD_HTTP_HEADER_CONTENT_TYPE, answer.content_type},
                                                         {MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"},
                                                         {"Content-Security-Policy", std::string(policy)},
                                                         {"X-Content-Type-Options", "nosniff"},
                                                         {"Referrer-Policy", "no-referrer"},
                                                         {"Cross-Origin-Resource-Policy", "same-origin"}};
  for (const auto& [name, value] : headers) MHD_add_response_header(response, name, value.c_str());
  if (answer.status == MHD_HTTP_METHOD_NOT_ALLOWED)
    MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  return response;
}

}  // namespace

// One request and its answer. kRead → [kWaiting (its connection is suspended)] → kAnswered
struct HttpReply::Exchange {
  enum class State : uint8_t { kRead, kWaiting, kAnswered };
  State state = State::kRead;
  MHD_Connection* connection = nullptr;  // null: the connection or the server is gone
  Event* run = nullptr;                  // activate it when the MHD daemon has something to do
  Answer answer;
  std::string_view policy = kNothingElse;
};

HttpReply::HttpReply(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
HttpReply::HttpReply(HttpReply&&) noexcept = default;
HttpReply& HttpReply::operator=(HttpReply&& other) noexcept {
  std::swap(exchange_, other.exchange_);
  return *this;
}
HttpReply::~HttpReply() {
  if (exchange_ != nullptr) send({.status = MHD_HTTP_SERVICE_UNAVAILABLE, .body = "not answered\n"});
}

void HttpReply::send(Answer answer) {
  const std::shared_ptr<Exchange> exchange = std::move(exchange_);
  exchange_.reset();
  if (exchange == nullptr || exchange->state == Exchange::State::kAnswered) return;
  exchange->answer = std::move(answer);
  const bool waits = std::exchange(exchange->state, Exchange::State::kAnswered) == Exchange::State::kWaiting;
  if (!waits || exchange->connection == nullptr) return;
  MHD_resume_connection(exchange->connection);
  exchange->run->activate();
}

struct HttpServer::Impl {
  using Exchange = HttpReply::Exchange;

  struct Client {
    int fd = -1;
    uint64_t since_ns = 0;               // when it was accepted or last answered
    uint64_t deadline_ns = 0;            // for its whole next request
    std::shared_ptr<Exchange> exchange;  // its latest request
  };
  struct Listener {
    Impl* server = nullptr;
    UniqueFd socket;
    Event acceptable;
    bool needs_relay = false;  // its clients may send descriptors

    ~Listener() {
      acceptable.reset();
      base::close_listener(std::move(socket));
    }
    void on_acceptable() { server->accept_some(*this); }
  };
  struct Route {
    Page page;
    std::function<void(HttpReply)> handler;  // empty: the page
  };

  Impl(events::EventLoop& loop, const TimeLimits& time_limits);
  ~Impl();
  Status listen(const std::string& text);
  void accept_some(Listener& listener);
  UniqueFd relayed(UniqueFd client);
  void rest();
  void accept_again();
  void close_idlest();
  void run();
  void sweep();
  MHD_Result on_request(MHD_Connection* connection, const char* path, const char* method, size_t* upload_size,
                        void** state);
  void handle(const std::shared_ptr<Exchange>& exchange, const char* path);
  void on_connection(MHD_Connection* connection, void** state, MHD_ConnectionNotificationCode code);

  events::EventLoop& loop;
  const TimeLimits time_limits;
  const base::SystemClock clock;
  MHD_Daemon* daemon = nullptr;
  Event ready;      // the MHD daemon has something to do
  Event timeout;    // the MHD daemon's own timeout
  Event sweeper;    // pending while there are connections
  Event pause_end;  // ends a pause of accepting
  std::vector<std::unique_ptr<Listener>> listeners;
  std::list<std::unique_ptr<UnixRelay>> relays;  // oldest first
  std::vector<std::string> unlink_at_end;
  std::map<std::string, Route, std::less<>> routes;
  std::list<Client> clients;
  HostCheck hosts;
  bool is_ending = false;
};

// --- set-up and end

HttpServer::Impl::Impl(events::EventLoop& event_loop, const TimeLimits& times) : loop(event_loop), time_limits(times) {
  const auto request = [](void* self, MHD_Connection* connection, const char* path, const char* method, const char*,
                          const char*, size_t* upload_size, void** state) {
    return static_cast<Impl*>(self)->on_request(connection, path, method, upload_size, state);
  };
  const auto notice = [](void* self, MHD_Connection* connection, void** state, MHD_ConnectionNotificationCode code) {
    static_cast<Impl*>(self)->on_connection(connection, state, code);
  };
  const auto completed = [](void*, MHD_Connection*, void** state, MHD_RequestTerminationCode) {
    auto* const exchange = static_cast<std::shared_ptr<Exchange>*>(std::exchange(*state, nullptr));
    if (exchange != nullptr) (*exchange)->connection = nullptr;
    delete exchange;
  };
  daemon = MHD_start_daemon(
      MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, nullptr, nullptr,
      static_cast<MHD_AccessHandlerCallback>(request), this, MHD_OPTION_EXTERNAL_LOGGER, &log_trouble, nullptr,
      MHD_OPTION_CONNECTION_LIMIT, static_cast<unsigned>(kHardLimit), MHD_OPTION_CONNECTION_MEMORY_LIMIT, kMaxHeaders,
      MHD_OPTION_CONNECTION_TIMEOUT, time_limits.next_request_seconds, MHD_OPTION_NOTIFY_CONNECTION,
      static_cast<MHD_NotifyConnectionCallback>(notice), this, MHD_OPTION_NOTIFY_COMPLETED,
      static_cast<MHD_RequestCompletedCallback>(completed), this, MHD_OPTION_END);
  if (daemon == nullptr) throw std::system_error(errno, std::system_category(), "the admin address");
  const int fd = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
  ready = Event::on_fd<&Impl::run>(loop, fd, events::kRead | events::kPersist, *this);
  timeout = Event::timer<&Impl::run>(loop, *this);
  sweeper = Event::timer<&Impl::sweep>(loop, *this);
  pause_end = Event::timer<&Impl::accept_again>(loop, *this);
  if (!ready.add()) throw std::system_error(errno, std::system_category(), "the admin address");
}

HttpServer::Impl::~Impl() {
  // Unlink while we still listen: later another daemon may have bound the same path.
  for (const std::string& path : unlink_at_end) ::unlink(path.c_str());
  listeners.clear();
  // MHD cannot be stopped while a connection is suspended. So answer all waiting requests, and let no further request
  // wait, not even one that was pipelined behind an answered one.
  is_ending = true;
  for (Client& client : clients) {
    if (client.exchange == nullptr || client.exchange->state != Exchange::State::kWaiting) continue;
    HttpReply(client.exchange).send({.status = MHD_HTTP_SERVICE_UNAVAILABLE, .body = std::string(kStopping)});
  }
  MHD_run(daemon);
  MHD_stop_daemon(daemon);
  for (const auto& relay : relays) relay->deliver();
}

Status HttpServer::Impl::listen(const std::string& text) {
  auto address = parse_address(text);
  if (!address) return address.status();
  auto sockets = listen_on(address.value());
  if (!sockets) return sockets.status();
  for (UniqueFd& socket : sockets.value()) {
    auto listener = std::make_unique<Listener>();
    listener->server = this;
    listener->acceptable =
        Event::on_fd<&Listener::on_acceptable>(loop, socket.get(), events::kRead | events::kPersist, *listener);
    if (Status added = listener->acceptable.add(); !added) return added;
    listener->needs_relay = base::may_bring_descriptors(socket.get());
    listener->socket = std::move(socket);
    listeners.push_back(std::move(listener));
  }
  if (address.value().is_unix()) unlink_at_end.push_back(address.value().path);
  return Status::ok();
}

// --- connections

void HttpServer::Impl::accept_some(Listener& listener) {
  for (int i = 0; i < kAcceptsPerEvent; ++i) {
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    auto* const at = reinterpret_cast<sockaddr*>(&peer);
    UniqueFd socket(::accept4(listener.socket.get(), at, &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) rest();
      break;
    }
    if (clients.size() >= kMaxConnections) close_idlest();
    if (listener.needs_relay) socket = relayed(std::move(socket));
    if (!socket.is_open()) {
      rest();
      break;
    }
    MHD_add_connection(daemon, socket.release(), at, length);  // closes it if it fails
  }
  run();
}

// The end of a relay to this client; not open: no descriptors are left. A relay whose client does not read its answers
// is there still when MHD has closed its end: of too many the oldest goes.
UniqueFd HttpServer::Impl::relayed(UniqueFd client) {
  const auto ended = [this](UnixRelay& relay) {
    std::erase_if(relays, [&](const auto& each) { return each.get() == &relay; });
  };
  auto relay = UnixRelay::begin(loop, std::move(client), ended);
  if (relay == nullptr) return {};
  if (relays.size() >= kHardLimit) relays.pop_front();
  relays.push_back(std::move(relay));
  return relays.back()->take_server_end();
}

void HttpServer::Impl::rest() {
  static base::LogLimit limit;
  base::log_limited(limit, kAdminNoDescriptors, "no descriptors left for the admin address");
  for (const auto& listener : listeners) listener->acceptable.del();
  pause_end.add(kAcceptPause);
}

void HttpServer::Impl::accept_again() {
  for (const auto& listener : listeners) {
    if (!listener->acceptable.add()) return rest();
  }
}

// Shuts down the connection that has had no request for the longest time, among those that wait for no answer. MHD then
// closes it.
void HttpServer::Impl::close_idlest() {
  Client* oldest = nullptr;
  for (Client& client : clients) {
    const bool waits = client.exchange != nullptr && client.exchange->state == Exchange::State::kWaiting;
    if (waits || client.fd < 0) continue;
    if (oldest == nullptr || client.since_ns < oldest->since_ns) oldest = &client;
  }
  if (oldest == nullptr) return;
  ::shutdown(oldest->fd, SHUT_RDWR);
  oldest->fd = -1;
}

// Runs the MHD daemon without blocking, and schedules its next run.
void HttpServer::Impl::run() {
  MHD_run(daemon);
  MHD_UNSIGNED_LONG_LONG milliseconds = 0;
  if (MHD_get_timeout(daemon, &milliseconds) != MHD_YES) {
    timeout.del();
    return;
  }
  timeout.add(std::chrono::milliseconds(milliseconds));
}

// Enforces the time limit of a whole request: MHD's own timeout does not end a client that sends a byte now and then.
void HttpServer::Impl::sweep() {
  const uint64_t now = clock.now_ns();
  for (Client& client : clients) {
    if (client.fd >= 0 && client.deadline_ns <= now) ::shutdown(std::exchange(client.fd, -1), SHUT_RDWR);
  }
  if (!clients.empty()) sweeper.add(kSweepEvery);
}

void HttpServer::Impl::on_connection(MHD_Connection* connection, void** state, MHD_ConnectionNotificationCode code) {
  if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
    auto* const gone = static_cast<Client*>(std::exchange(*state, nullptr));
    std::erase_if(clients, [&](const Client& client) { return &client == gone; });
    return;
  }
  const uint64_t now = clock.now_ns();
  Client& client = clients.emplace_back();
  client.fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
  client.since_ns = now;
  client.deadline_ns = now + time_limits.first_request_seconds * kSecondNs;
  *state = &client;
  if (!sweeper.pending()) sweeper.add(kSweepEvery);
}

// --- requests

// MHD calls it when the headers are complete, for each piece of a body, at the end of the body, and when a suspended
// connection is resumed.
MHD_Result HttpServer::Impl::on_request(MHD_Connection* connection, const char* path, const char* method,
                                        size_t* upload_size, void** state) {
  auto* held = static_cast<std::shared_ptr<Exchange>*>(*state);
  auto& client =
      *static_cast<Client*>(MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context);
  if (held == nullptr) {
    held = new std::shared_ptr<Exchange>(std::make_shared<Exchange>());
    (*held)->connection = connection;
    (*held)->run = &timeout;
    *state = held;
    client.exchange = *held;
    const bool is_plain =
        std::strcmp(method, MHD_HTTP_METHOD_GET) == 0 || std::strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    if (is_plain) return MHD_YES;
    HttpReply(*held).send({.status = MHD_HTTP_METHOD_NOT_ALLOWED, .body = "GET and HEAD only\n"});
  }
  Exchange& exchange = **held;
  if (*upload_size != 0) {
    *upload_size = 0;  // ignore a body
    return MHD_YES;
  }
  if (exchange.state == Exchange::State::kRead) {
    handle(*held, path);
    if (exchange.state == Exchange::State::kRead) {
      exchange.state = Exchange::State::kWaiting;
      return MHD_suspend_connection(connection), MHD_YES;
    }
  }
  client.since_ns = clock.now_ns();
  client.deadline_ns = client.since_ns + time_limits.next_request_seconds * kSecondNs;
  MHD_Response* const response = make_response(exchange.answer, exchange.policy);
  const MHD_Result queued = MHD_queue_response(connection, exchange.answer.status, response);
  MHD_destroy_response(response);
  return queued;
}

void HttpServer::Impl::handle(const std::shared_ptr<Exchange>& exchange, const char* path) {
  HttpReply reply(exchange);
  if (is_ending) return reply.send({.status = MHD_HTTP_SERVICE_UNAVAILABLE, .body = std::string(kStopping)});
  const char* const host = MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
  if (host != nullptr && !hosts.passes(host)) {
    return reply.send({.status = MHD_HTTP_FORBIDDEN, .body = std::string(kWrongHost)});
  }
  const auto route = routes.find(std::string_view(path));
  if (route == routes.end()) return reply.send({.status = MHD_HTTP_NOT_FOUND, .body = "there is nothing here\n"});
  if (route->second.handler) return route->second.handler(std::move(reply));
  const Page& page = route->second.page;
  exchange->policy = page.content_security_policy;
  reply.send({.body = std::string(page.body), .content_type = std::string(page.content_type)});
}

// --- the public face

HttpServer::HttpServer(events::EventLoop& loop, const TimeLimits& time_limits)
    : impl_(std::make_unique<Impl>(loop, time_limits)) {}
HttpServer::~HttpServer() = default;

Status HttpServer::listen(const AdminOption& option) {
  allow_hosts(option.hosts);
  if (option.address.empty()) return Status::ok();
  const Status listening = impl_->listen(option.address);
  if (!listening && option.is_required) return Status::error("admin: " + listening.message());
  if (!listening) {
    base::log(kAdminNotListening, "no metrics and no health are served: {}", base::field("why", listening.message()));
  }
  for (const std::string& address : addresses()) {
    base::log(kAdminListening, "admin address: {}", base::field("address", address));
  }
  return Status::ok();
}

void HttpServer::allow_hosts(const std::vector<std::string>& names) {
  impl_->hosts.allow(names);
}

std::vector<std::string> HttpServer::addresses() const {
  std::vector<std::string> texts;
  for (const auto& listener : impl_->listeners) texts.push_back(bound_address(listener->socket.get()));
  return texts;
}

void HttpServer::serve(const std::string& path, const Page& page) {
  impl_->routes[path] = {.page = page, .handler = {}};
}

void HttpServer::serve(const std::string& path, std::function<void(HttpReply)> handler) {
  impl_->routes[path] = {.page = {}, .handler = std::move(handler)};
}

}  // namespace egret::admin
