#include "discovery/resolver.h"

#include <utility>

#define CARES_NO_DEPRECATED  // what replaces ares_query() and ares_search() in newer versions is not in 1.18
#include <ares.h>
#include <arpa/inet.h>

#include "base/text.h"

namespace egret::discovery {

using base::Status;

namespace {

constexpr int kInternetClass = 1;
constexpr int kEdnsSize = 1232;  // no answer of this size is fragmented: the DNS flag day's

// ares_library_init() has an effect on Windows only, but c-ares wants it called.
bool library_is_ready() {
  static const bool is_ready = ::ares_library_init(ARES_LIB_INIT_ALL) == ARES_SUCCESS;
  return is_ready;
}

base::Status ares_error(const std::string& what, int status) {
  return Status::error(what + ": " + ::ares_strerror(status));
}

bool is_address(const std::string& host) {
  in6_addr ignored{};
  return ::inet_pton(AF_INET, host.c_str(), &ignored) == 1 || ::inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

// c-ares takes no spaces in a list.
std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

bool is_server(const std::string& text) {
  const auto parsed = base::parse_host_port(text);
  return is_address(text) || (parsed && parsed->port != 0 && is_address(parsed->host));
}

// In words for operators, of which c-ares has only some.
std::string failure_text(int status) {
  switch (status) {
    case ARES_ENODATA:
      return "the name has no such records";
    case ARES_ENOTFOUND:
      return "there is no such name";
    case ARES_ETIMEOUT:
      return "no name server answers in time";
    // c-ares goes on to the next server after any of these, and says ECONNREFUSED after the last one (1.18).
    case ARES_ESERVFAIL:
    case ARES_EREFUSED:
    case ARES_ECONNREFUSED:
      return "name servers fail, refuse, or cannot be reached";
    default:
      return ::ares_strerror(status);
  }
}

}  // namespace

struct Resolver::Question {
  Resolver& resolver;
  uint64_t tag;
};

// A socket of c-ares. process() may destroy it.
struct Resolver::Watch {
  Watch(Resolver& owner, int descriptor)
      : resolver(owner),
        fd(descriptor),
        reading(events::Event::on_fd<&Watch::on_readable>(owner.loop_, fd, events::kRead | events::kPersist, *this)),
        writing(events::Event::on_fd<&Watch::on_writable>(owner.loop_, fd, events::kWrite | events::kPersist, *this)) {}

  void on_readable() { resolver.process(fd, ARES_SOCKET_BAD); }
  void on_writable() { resolver.process(ARES_SOCKET_BAD, fd); }
  // An event that cannot be added is a question that times out.
  static void set(events::Event& event, bool wanted) {
    if (wanted) {
      static_cast<void>(event.add());
    } else {
      event.del();
    }
  }

  Resolver& resolver;
  const int fd;
  events::Event reading;
  events::Event writing;
};

void Resolver::Deleter::operator()(ares_channeldata* channel) const {
  ::ares_destroy(channel);
}

Resolver::Resolver(events::EventLoop& loop, Asker& asker)
    : loop_(loop),
      asker_(asker),
      timer_(events::Event::timer<&Resolver::on_timeout>(loop, *this)),
      delivery_(events::Event::timer<&Resolver::deliver>(loop, *this)) {}

Resolver::~Resolver() {
  close();
}

Status Resolver::open(const ResolverOptions& wanted) {
  close();
  std::string lookups = "b";  // name servers only: /etc/hosts has no SRV records, and c-ares has no TTL of its lines
  ares_options options{};
  options.flags = ARES_FLAG_EDNS;
  options.ednspsz = kEdnsSize;
  options.timeout = static_cast<int>(wanted.timeout.count());
  options.tries = wanted.tries;
  options.lookups = lookups.data();
  options.sock_state_cb = &Resolver::on_socket_state;
  options.sock_state_cb_data = this;
  constexpr int kSet = ARES_OPT_FLAGS | ARES_OPT_EDNSPSZ | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
                       ARES_OPT_SOCK_STATE_CB;
  ares_channel channel = nullptr;
  int status = library_is_ready() ? ::ares_init_options(&channel, &options, kSet) : ARES_ENOTINITIALIZED;
  if (status != ARES_SUCCESS) return ares_error("cannot ask name servers", status);
  channel_.reset(channel);
  if (!wanted.servers.empty()) status = ::ares_set_servers_ports_csv(channel, without_spaces(wanted.servers).c_str());
  if (status != ARES_SUCCESS) return ares_error("cannot ask the name servers " + wanted.servers, status);
  return Status::ok();
}

void Resolver::close() {
  channel_.reset();  // calls on_answer() for each open question, and on_socket_state() for each socket
  watches_.clear();
  replies_.clear();
  timer_.del();
  delivery_.del();
}

void Resolver::ask(const std::string& name, RecordType type, uint64_t tag) {
  auto* const question = new Question{*this, tag};  // on_answer() frees it: c-ares calls it exactly once
  const auto asks = name.ends_with('.') ? &::ares_query : &::ares_search;
  asks(channel_.get(), name.c_str(), kInternetClass, static_cast<int>(type), &Resolver::on_answer, question);
  set_timer();
}

void Resolver::on_answer(void* question, int status, int, unsigned char* message, int size) {
  const std::unique_ptr<Question> asked(static_cast<Question*>(question));
  if (status == ARES_EDESTRUCTION) return;
  Resolver& self = asked->resolver;
  Reply reply;
  if (status != ARES_SUCCESS) {
    reply.failure = failure_text(status);
    reply.says_no_data = status == ARES_ENODATA || status == ARES_ENOTFOUND;
  } else if (auto answer = parse_dns_answer({message, static_cast<size_t>(size)}); answer) {
    reply.answer = std::move(answer.value());
  } else {
    reply.failure = answer.message();
  }
  self.replies_.emplace_back(asked->tag, std::move(reply));
  self.delivery_.activate();
}

void Resolver::on_socket_state(void* resolver, int fd, int readable, int writable) {
  Resolver& self = *static_cast<Resolver*>(resolver);
  if (readable == 0 && writable == 0) {
    self.watches_.erase(fd);
    return;
  }
  std::unique_ptr<Watch>& watch = self.watches_[fd];
  if (watch == nullptr) watch = std::make_unique<Watch>(self, fd);
  Watch::set(watch->reading, readable != 0);
  Watch::set(watch->writing, writable != 0);
}

void Resolver::process(int readable_fd, int writable_fd) {
  ::ares_process_fd(channel_.get(), readable_fd, writable_fd);
  set_timer();
}

void Resolver::on_timeout() {
  process(ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

void Resolver::set_timer() {
  timeval time{};
  if (::ares_timeout(channel_.get(), nullptr, &time) == nullptr) {
    timer_.del();
  } else {
    timer_.add(std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec));
  }
}

// on_reply() may close(), which empties replies_, and may ask(), which may add to them.
void Resolver::deliver() {
  while (!replies_.empty()) {
    const auto [tag, reply] = std::move(replies_.front());
    replies_.pop_front();
    asker_.on_reply(tag, reply);
  }
}

Status check_servers(const std::string& servers) {
  for (const std::string& server : base::split(servers, ',')) {
    if (is_server(server)) continue;
    return Status::error(base::quoted(server) + " is no address of a name server: expected ADDRESS or ADDRESS:PORT");
  }
  return Status::ok();
}

}  // namespace egret::discovery
