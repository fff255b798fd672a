// One client over TLS, seen from both ends: what a call waits for, output that moves meanwhile, input that is held
// inside, ends of the connection.
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/client/tls.h"
#include "tls_files.h"

using namespace egret::proxy;
using egret::base::UniqueFd;

namespace {

struct FreeClient {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

// A client and the server's socket of it, neither of which waits. The client does as OpenSSL does on its own.
struct Ends {
  explicit Ends(int version = TLS1_3_VERSION) {
    files.make("one");
    const TlsOptions options = files.options("one");
    server_of_all = std::make_unique<TlsServer>(options, load_tls(options), clock);
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    server = server_of_all->accept(UniqueFd(fds[0]), "somebody", counters);
    wire.reset(fds[1]);
    context.reset(SSL_CTX_new(TLS_client_method()));
    SSL_CTX_set_max_proto_version(context.get(), version);
    client.reset(SSL_new(context.get()));
    SSL_set_fd(client.get(), wire.get());
    SSL_set_connect_state(client.get());
  }
  // Both go on until the client is through.
  void shake_hands() {
    char nothing[1];
    for (int i = 0; i < 20 && SSL_do_handshake(client.get()) != 1; ++i) {
      CHECK(server->receive(nothing, sizeof nothing).io == Io::kWantRead);
    }
    REQUIRE(SSL_is_init_finished(client.get()) == 1);
    CHECK(server->receive(nothing, sizeof nothing).io == Io::kWantRead);
    CHECK(server->is_ready());
    ERR_clear_error();
  }
  void client_sends(const std::string& text) const {
    REQUIRE(SSL_write(client.get(), text.data(), static_cast<int>(text.size())) == static_cast<int>(text.size()));
  }
  std::string client_hears() const {
    std::string all;
    std::array<char, 65536> buffer;
    for (int got = 0; (got = SSL_read(client.get(), buffer.data(), buffer.size())) > 0;) {
      all.append(buffer.data(), static_cast<size_t>(got));
    }
    ERR_clear_error();
    return all;
  }

  TlsFiles files;
  egret::base::ManualClock clock;
  TlsCounters counters;
  std::unique_ptr<TlsServer> server_of_all;
  std::unique_ptr<ClientSocket> server;
  UniqueFd wire;  // the client's end
  std::unique_ptr<SSL_CTX, FreeClient> context;
  std::unique_ptr<SSL, FreeClient> client;
};

std::string counted(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i * 7 % 26);
  return text;
}

}  // namespace

TEST_CASE("the handshake goes on as bytes come, and is counted as a session") {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Ends ends(version);
    CHECK_FALSE(ends.server->is_ready());
    ends.shake_hands();
    CHECK(ends.counters.new_sessions.get() == 1);
    ends.client_sends("hello");
    char buffer[100];
    const auto got = ends.server->receive(buffer, sizeof buffer);
    CHECK(got.io == Io::kDone);
    CHECK(std::string(buffer, got.bytes) == "hello");
    CHECK_FALSE(ends.server->holds_input());
    CHECK(ends.server->receive(buffer, sizeof buffer).io == Io::kWantRead);
  }
}

TEST_CASE("several records are received at once, and what the buffer has no room for is held") {
  Ends ends;
  ends.shake_hands();
  const std::string text = counted(100);
  for (int i = 0; i < 5; ++i) ends.client_sends(text);
  std::string heard;
  char buffer[130];
  for (const bool more : {true, true, true, false}) {
    const auto got = ends.server->receive(buffer, sizeof buffer);
    REQUIRE(got.io == Io::kDone);
    heard.append(buffer, got.bytes);
    CHECK(ends.server->holds_input() == more);
  }
  CHECK(heard == text + text + text + text + text);
}

TEST_CASE("what several records hold is received into several pieces of memory") {
  Ends ends;
  ends.shake_hands();
  const std::string text = counted(100);
  for (int i = 0; i < 5; ++i) ends.client_sends(text);
  std::string heard(500, ' ');
  const iovec first[] = {{heard.data(), 30}, {heard.data() + 30, 1}, {heard.data() + 31, 200}};
  CHECK(ends.server->receive(first).bytes == 231);
  CHECK(ends.server->holds_input());
  const iovec rest[] = {{heard.data() + 231, 69}, {heard.data() + 300, 200}, {heard.data(), 1}};
  CHECK(ends.server->receive(rest).bytes == 269);
  CHECK(heard == text + text + text + text + text);
  CHECK(ends.server->receive(rest).io == Io::kWantRead);
}

TEST_CASE("an end right behind the last bytes is held, too, and reported next") {
  Ends ends;
  ends.shake_hands();
  ends.client_sends("bye");
  SSL_shutdown(ends.client.get());
  char buffer[100];
  CHECK(ends.server->receive(buffer, sizeof buffer).bytes == 3);
  CHECK(ends.server->holds_input());
  CHECK(ends.server->receive(buffer, sizeof buffer).io == Io::kEnd);
  // The other direction is open still, and ends with a goodbye.
  iovec piece{buffer, 3};
  CHECK(ends.server->send({&piece, 1}).io == Io::kDone);
  ends.server->say_goodbye();
  ends.server.reset();
  CHECK(ends.client_hears() == "bye");
  CHECK((SSL_get_shutdown(ends.client.get()) & SSL_RECEIVED_SHUTDOWN) != 0);
}

TEST_CASE("a client that just closes has ended; nothing is counted") {
  Ends ends;
  ends.shake_hands();
  ends.client_sends("bye");
  ends.wire.reset();
  char buffer[100];
  CHECK(ends.server->receive(buffer, sizeof buffer).bytes == 3);
  CHECK(ends.server->receive(buffer, sizeof buffer).io == Io::kEnd);
  CHECK(ends.counters.handshake_errors.get() == 0);
  CHECK(ends.counters.protocol_errors.get() == 0);
}

TEST_CASE("output that is left over may move, and more may follow it") {
  Ends ends;
  ends.shake_hands();
  const std::string text = counted(3'000'000);
  std::string heard;
  size_t sent = 0;
  int stops = 0;
  while (sent < text.size()) {
    // Somewhere else each time, in pieces that are cut elsewhere each time but for the first, which only grows.
    const std::string copy = text.substr(sent);
    const size_t first = std::min(copy.size(), size_t{20'000} + static_cast<size_t>(stops) * 1000);
    std::string front = copy.substr(0, first);
    std::string back = copy.substr(first);
    const std::array<iovec, 2> pieces = {{{front.data(), front.size()}, {back.data(), back.size()}}};
    const auto done = ends.server->send(pieces);
    sent += done.bytes;
    if (done.io == Io::kDone) break;
    REQUIRE(done.io == Io::kWantWrite);
    ++stops;
    heard += ends.client_hears();
  }
  heard += ends.client_hears();
  CHECK(stops > 3);
  CHECK(heard == text);
}

TEST_CASE("one call takes a bounded number of records, however many there are") {
  Ends ends;
  ends.shake_hands();
  char buffer[1000];
  const auto left_on_the_wire = [&] {
    int bytes = 0;
    REQUIRE(::ioctl(ends.server->fd(), FIONREAD, &bytes) == 0);
    return bytes;
  };
  // Records of a byte.
  for (int i = 0; i < 150; ++i) ends.client_sends("x");
  size_t got = ends.server->receive(buffer, sizeof buffer).bytes;
  CHECK(got <= 64);
  CHECK(left_on_the_wire() > 0);
  while (got < 150) got += ends.server->receive(buffer, sizeof buffer).bytes;
  // Records that bring none: new keys.
  for (int i = 0; i < 100; ++i) {
    REQUIRE(SSL_key_update(ends.client.get(), SSL_KEY_UPDATE_REQUESTED) == 1);
    REQUIRE(SSL_do_handshake(ends.client.get()) == 1);
  }
  ends.client_sends("y");
  CHECK(ends.server->receive(buffer, sizeof buffer).io == Io::kWantRead);
  CHECK(left_on_the_wire() > 0);
  ClientSocket::Transfer end{Io::kWantRead};
  for (int calls = 0; calls < 200 && end.bytes == 0; ++calls) end = ends.server->receive(buffer, sizeof buffer);
  CHECK(std::string(buffer, end.bytes) == "y");
}

TEST_CASE("a client without TLS fails once, and so does one whose record was changed") {
  Ends stranger;
  REQUIRE(::write(stranger.wire.get(), "get a\r\n", 7) == 7);
  char buffer[100];
  for (int i = 0; i < 3; ++i) CHECK(stranger.server->receive(buffer, sizeof buffer).io == Io::kFailed);
  CHECK(stranger.counters.handshake_errors.get() == 1);
  iovec piece{buffer, 1};
  CHECK(stranger.server->send({&piece, 1}).io == Io::kFailed);
  CHECK(stranger.counters.handshake_errors.get() == 1);

  Ends ends;
  ends.shake_hands();
  REQUIRE(::write(ends.wire.get(), "\x17\x03\x03\0\x20 this was sealed by nobody at all", 37) == 37);
  for (int i = 0; i < 3; ++i) CHECK(ends.server->receive(buffer, sizeof buffer).io == Io::kFailed);
  CHECK(ends.counters.handshake_errors.get() == 0);
  CHECK(ends.counters.protocol_errors.get() == 1);
}

TEST_CASE("a client that disconnects during the handshake is counted; one that only connected is not") {
  char buffer[100];
  Ends knocked;
  knocked.wire.reset();
  CHECK(knocked.server->receive(buffer, sizeof buffer).io == Io::kFailed);
  CHECK(knocked.counters.handshake_errors.get() == 0);
  Ends left;
  CHECK(SSL_do_handshake(left.client.get()) != 1);
  ERR_clear_error();
  CHECK(left.server->receive(buffer, sizeof buffer).io == Io::kWantRead);
  left.wire.reset();
  CHECK(left.server->receive(buffer, sizeof buffer).io == Io::kFailed);
  CHECK(left.counters.handshake_errors.get() == 1);
  Ends late;
  late.server->tell_too_late();
  CHECK(late.counters.handshake_errors.get() == 1);
}
