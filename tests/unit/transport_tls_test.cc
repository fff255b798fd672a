// Mutual TLS over the TCP transport: who gets a session, what each side says of the others, and what bytes do that are no
// TLS.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "certificates.h"
#include "tls/mutual.h"
#include "transport_tcp_pair.h"

using namespace egret::transport;
using egret::base::observe_word;
using egret::base::publish_word;
using egret::tls::Fault;
using egret::tls::Mutual;
using egret::tls::MutualOptions;

namespace {

constexpr size_t kSlotOfLane2 = 3 * 64 + 2 * 2048;
constexpr const char* kLoopback = "IP:127.0.0.1";

using Loaded = std::shared_ptr<const Mutual>;

MutualOptions files_of(const Authority& issuer, const std::string& subject, const Authority& trusted) {
  return {.certificate = issuer.at(subject + ".pem"),
          .key = issuer.at(subject + ".key"),
          .authorities = trusted.at("ca.pem"),
          .names = {}};
}

Loaded load(const MutualOptions& options) {
  auto loaded = Mutual::load(options);
  if (const auto* fault = std::get_if<Fault>(&loaded)) FAIL(fault->what);
  return std::get<Loaded>(loaded);
}

// Both sides' files, as they should be; a test spoils them.
struct Sides {
  Sides() {
    authority.issue("backend", kLoopback);
    authority.issue("proxy", "DNS:proxy.example");
  }
  MutualOptions backend() const { return files_of(authority, "backend", authority); }
  MutualOptions proxy() const { return files_of(authority, "proxy", authority); }

  Authority authority;
};

// What each side says in the end: the backend's frame or error, the proxy's.
struct Outcome {
  std::string backend, proxy;
  std::string backend_facts, proxy_facts;
};

Outcome outcome_of(const Loaded& backend, const Loaded& proxy, bool is_required = true) {
  TcpPair pair({.allowed_uids = {}, .tls = {.mutual = backend, .is_required = is_required}},
               {.backend_uids = {}, .tls = proxy});
  REQUIRE(pair.client->send_frame(bytes_of("hello"), false).is_ok());
  Outcome outcome;
  // Each reads when there is something to be read, as an event loop does.
  for (int turns = 0; turns < 2000 && (outcome.backend.empty() || outcome.proxy.empty()); ++turns) {
    if (outcome.proxy.empty() && is_readable(pair.client->control_fd(), 5)) outcome.proxy = next_frame(*pair.client);
    if (pair.endpoint == nullptr || !outcome.backend.empty()) continue;
    if (!is_readable(pair.endpoint->control_fd(), 5)) continue;
    outcome.backend = next_frame(*pair.endpoint);
    if (outcome.backend.empty()) continue;
    if (outcome.backend == "hello") REQUIRE(pair.endpoint->send_frame(bytes_of("welcome"), false).is_ok());
    outcome.backend_facts = pair.endpoint->facts();
    if (outcome.backend != "hello") pair.endpoint.reset();  // as the backend does
  }
  outcome.proxy_facts = pair.client->facts();
  return outcome;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// An open session, encrypted.
struct TlsPair : TcpPair {
  explicit TlsPair(uint64_t records_per_key = uint64_t{1} << 22, const Sides& sides = {})
      : TcpPair({.allowed_uids = {}, .tls = {.mutual = renewing(sides.backend(), records_per_key)}},
                {.backend_uids = {}, .tls = renewing(sides.proxy(), records_per_key)}) {
    REQUIRE(client->send_frame(bytes_of("hello"), false).is_ok());
    std::string came;
    for (int turns = 0; turns < 2000 && came.empty(); ++turns) {
      next_frame(*client);
      if (is_readable(endpoint->control_fd(), 5)) came = next_frame(*endpoint);
    }
    REQUIRE(came == "hello");
    TcpPair::open();
  }
  static Loaded renewing(MutualOptions options, uint64_t records_per_key) {
    options.records_per_key = records_per_key;
    return load(options);
  }
  // One message there, one back.
  void exchange(uint64_t word) {
    send(2, kSlotOfLane2, "request", word);
    client->flush();
    while (observe_word(endpoint->request_memory() + kSlotOfLane2) != word) events();
    publish_word(endpoint->response_memory() + 2048, word);
    endpoint->deliver(1, 2048, 1024);
    REQUIRE(endpoint->flush());
    while (observe_word(client->response_image() + 2048) != word) REQUIRE(is_well(client_events()));
  }
  static bool is_well(const std::vector<Event>& events) {
    return std::ranges::none_of(events, [](const Event& event) { return event.kind == Event::Kind::kClosed; });
  }
};

}  // namespace

TEST_SUITE("mutual TLS over TCP") {
  TEST_CASE("both show certificates that the other trusts: frames pass, and facts say how") {
    const Sides sides;
    const Outcome outcome = outcome_of(load(sides.backend()), load(sides.proxy()));
    CHECK(outcome.backend == "hello");
    CHECK(outcome.proxy == "welcome");
    CHECK(contains(outcome.backend_facts, "TLSv1.3"));
    CHECK(contains(outcome.backend_facts, "CN=proxy"));
    CHECK(contains(outcome.proxy_facts, "CN=backend"));
  }

  TEST_CASE("a certificate of another authority is refused, and each side says so") {
    const Sides sides;
    Authority strange("strange");
    strange.issue("backend", kLoopback);
    strange.issue("proxy", "DNS:proxy.example");
    SUBCASE("the proxy's") {
      const Outcome outcome = outcome_of(load(sides.backend()), load(files_of(strange, "proxy", sides.authority)));
      CHECK(
          contains(outcome.backend, "error: TLS: its certificate is refused: unable to get local issuer certificate"));
      CHECK(contains(outcome.proxy, "error: tcp:127.0.0.1:"));
    }
    SUBCASE("the backend's") {
      const Outcome outcome = outcome_of(load(files_of(strange, "backend", sides.authority)), load(sides.proxy()));
      CHECK(contains(outcome.proxy, "TLS: its certificate is refused: unable to get local issuer certificate"));
      CHECK(contains(outcome.backend, "error: TLS: "));
    }
  }

  TEST_CASE("an expired certificate is refused, and so is one that is not valid yet") {
    Sides sides;
    sides.authority.issue("late", kLoopback, {.from = -7200, .to = -3600});
    sides.authority.issue("early", kLoopback, {.from = 3600, .to = 7200});
    const MutualOptions late = files_of(sides.authority, "late", sides.authority);
    const MutualOptions early = files_of(sides.authority, "early", sides.authority);
    CHECK(contains(outcome_of(load(sides.backend()), load(late)).backend, "certificate has expired"));
    CHECK(contains(outcome_of(load(sides.backend()), load(early)).backend, "certificate is not yet valid"));
    CHECK(contains(outcome_of(load(late), load(sides.proxy())).proxy, "certificate has expired"));
    CHECK(contains(load(late)->certificate().warning, "expired"));
    CHECK(load(sides.proxy())->certificate().warning.empty());
  }

  TEST_CASE("a backend's certificate must be for the host that the proxy connects to, or for a name that is set") {
    Sides sides;
    sides.authority.issue("other", "DNS:cache.example,IP:10.0.0.9");
    const Loaded other = load(files_of(sides.authority, "other", sides.authority));
    MutualOptions proxy = sides.proxy();
    CHECK(contains(outcome_of(other, load(proxy)).proxy, "its certificate is refused: hostname mismatch"));
    for (const char* const name : {"cache.example", "10.0.0.9"}) {
      CAPTURE(name);
      proxy.names = {"10.0.0.1", "unknown.example", "10.0.0.2", name};
      CHECK(outcome_of(other, load(proxy)).proxy == "welcome");
    }
  }

  TEST_CASE("a proxy's certificate may be any of the authority's, or must be for a name that is set") {
    const Sides sides;
    MutualOptions backend = sides.backend();
    backend.names = {"10.0.0.1", "proxy.example"};
    CHECK(outcome_of(load(backend), load(sides.proxy())).backend == "hello");
    backend.names = {"10.0.0.1", "another.example"};
    CHECK(contains(outcome_of(load(backend), load(sides.proxy())).backend, "hostname mismatch"));
  }

  TEST_CASE("what a certificate's subject is called counts for nothing") {
    Sides sides;
    sides.authority.issue("127.0.0.1", "IP:10.0.0.9");
    sides.authority.issue("named.example", "IP:10.0.0.9");
    const Loaded backend = load(files_of(sides.authority, "127.0.0.1", sides.authority));
    CHECK(contains(outcome_of(backend, load(sides.proxy())).proxy, "hostname mismatch"));
    MutualOptions choosy = sides.backend();
    choosy.names = {"named.example"};
    const Loaded proxy = load(files_of(sides.authority, "named.example", sides.authority));
    CHECK(contains(outcome_of(load(choosy), proxy).backend, "hostname mismatch"));
  }

  TEST_CASE("a side without TLS is told what it lacks") {
    const Sides sides;
    const Outcome plain = outcome_of(load(sides.backend()), nullptr);
    CHECK(plain.backend == "error: the peer does not speak TLS: give the proxy session_tls_certificate, too");
    CHECK(contains(plain.proxy, "it may ask for TLS (session_tls_certificate)"));
    const Outcome strict = outcome_of(nullptr, load(sides.proxy()));
    CHECK(strict.backend == "error: the peer speaks TLS, and this backend has no session_tls_certificate");
    CHECK(contains(strict.proxy, "TLS: "));
  }

  TEST_CASE("where TLS is not required, proxies with and without it are served") {
    const Sides sides;
    CHECK(outcome_of(load(sides.backend()), nullptr, false).backend == "hello");
    const Outcome secure = outcome_of(load(sides.backend()), load(sides.proxy()), false);
    CHECK(secure.backend == "hello");
    CHECK(contains(secure.backend_facts, "TLSv1.3"));
  }

  TEST_CASE("what is offered anew holds for connections from then on") {
    const Sides sides;
    Server server;
    server.listener->offer({.mutual = load(sides.backend())});
    auto client = connect("tcp:" + server.address);
    REQUIRE(client.is_ok());
    server.accept();
    next_frame(*client.value());
    REQUIRE(client.value()->send_frame(bytes_of("hello"), false).is_ok());
    CHECK(contains(wait_for_frame(*server.endpoint), "does not speak TLS"));
  }

  TEST_CASE("files that do not fit are named") {
    Sides sides;
    const auto part_of = [](const MutualOptions& options) {
      const auto loaded = Mutual::load(options);
      const auto* const fault = std::get_if<Fault>(&loaded);
      REQUIRE(fault != nullptr);
      return fault->part;
    };
    MutualOptions wrong = sides.proxy();
    wrong.key = sides.authority.at("backend.key");
    CHECK(part_of(wrong) == Fault::Part::kKey);
    wrong = sides.proxy();
    wrong.authorities = sides.authority.at("proxy.key");
    CHECK(part_of(wrong) == Fault::Part::kAuthorities);
    wrong = sides.proxy();
    wrong.certificate = sides.authority.at("absent.pem");
    CHECK(part_of(wrong) == Fault::Part::kCertificate);
  }
}

TEST_SUITE("encrypted data over TCP") {
  TEST_CASE("requests and responses pass, across many changes of keys") {
    TlsPair pair(4);
    for (uint64_t word = 1; word <= 200; ++word) pair.exchange(word);
  }

  TEST_CASE("a flush of more than a record, and than a socket takes, arrives whole and in order") {
    TlsPair pair;
    constexpr size_t kSlots = kShape.response_bytes / kShape.reply_bytes;
    uint64_t sent = 0;
    uint64_t seen = 0;
    while (sent < 20 * kSlots) {
      for (size_t slot = 0; slot < kSlots; ++slot) {
        publish_word(pair.endpoint->response_memory() + slot * kShape.reply_bytes, ++sent);
        pair.endpoint->deliver(static_cast<uint32_t>(slot / 2), slot * kShape.reply_bytes, kShape.reply_bytes);
      }
      CHECK(pair.endpoint->flush());
      for (size_t came = 0; came < kSlots;) {
        for (const Event& event : pair.client_events()) {
          REQUIRE(event.kind == Event::Kind::kDelivered);
          CHECK(observe_word(event.bytes.data()) == ++seen);
          ++came;
        }
      }
    }
  }

  TEST_CASE("a peer that goes is reported once by each side's poll") {
    TlsPair pair;
    SUBCASE("the client") {
      pair.client.reset();
      std::vector<Event> events = pair.events();
      while (events.empty()) events = pair.events();  // what it said before
      CHECK(ends(events));
    }
    SUBCASE("the server") {
      pair.endpoint.reset();
      CHECK(ends(pair.client_events()));
    }
  }
}

TEST_SUITE("peers of a TLS port that keep to nothing") {
  TEST_CASE("bytes that begin as a handshake, and are none") {
    const Sides sides;
    for (const std::string& rest :
         {std::string(2000, '\x16'), std::string("\x03\x01\xff\xff", 4) + std::string(500, 'x'),
          std::string("\x03\x01\x00\x05\x01\x00\x00\x01\x00", 9)}) {
      LooseClient raw({.allowed_uids = {}, .tls = {.mutual = load(sides.backend())}});
      const std::string bytes = "\x16" + rest;
      raw.write(bytes.data(), bytes.size());
      raw.socket.reset();
      CHECK(contains(wait_for_frame(*raw.endpoint), "error: TLS: "));
    }
  }

  TEST_CASE("any other bytes are no TLS") {
    const Sides sides;
    for (const char* const bytes : {"get a\r\n", "\x17\x03\x03\x00\x01x", "GET / HTTP/1.0\r\n\r\n"}) {
      LooseClient raw({.allowed_uids = {}, .tls = {.mutual = load(sides.backend())}});
      raw.write(bytes, 6);
      CHECK(contains(wait_for_frame(*raw.endpoint), "does not speak TLS"));
    }
  }

  TEST_CASE("who says nothing is waited for, and bothers nobody") {
    const Sides sides;
    LooseClient raw({.allowed_uids = {}, .tls = {.mutual = load(sides.backend())}});
    CHECK(next_frame(*raw.endpoint) == "");
    raw.write("\x16", 1);
    CHECK(next_frame(*raw.endpoint) == "");
    raw.socket.reset();
    CHECK(contains(wait_for_frame(*raw.endpoint), "error: "));
  }

  TEST_CASE("bytes that are not encrypted end an open session, without being taken") {
    TlsPair pair;
    const tcp::FrameHead head{.kind = tcp::FrameKind::kRequest, .lane = 2, .offset = kSlotOfLane2, .length = 8};
    std::array<char, sizeof head + 8> bytes{};
    std::memcpy(bytes.data(), &head, sizeof head);
    bytes.back() = 7;
    REQUIRE(::send(pair.client->data_fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == ssize_t{bytes.size()});
    CHECK(ends(pair.events()));
    CHECK(observe_word(pair.endpoint->request_memory() + kSlotOfLane2) == 0);
  }
}
