// The contract of transport.h as the TCP transport keeps it, both ends in one process; and peers that keep to nothing.
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "transport_tcp_pair.h"

using namespace egret::transport;
using egret::base::observe_word;
using egret::base::publish_word;
using egret::base::UniqueFd;
using tcp::FrameHead;
using tcp::FrameKind;

namespace {

constexpr size_t kSlotOfLane2 = 3 * 64 + 2 * 2048;

// A server that grants a session, and then writes to the socket what it likes.
struct LooseServer {
  LooseServer() : address(free_address()), listener(::socket(AF_INET, SOCK_STREAM, 0)) {
    const int on = 1;
    ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
    REQUIRE(::bind(listener.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    auto connected = connect("tcp:" + address);
    REQUIRE_MESSAGE(connected.is_ok(), connected.status().message());
    client = std::move(connected.value());
    socket.reset(::accept(listener.get(), nullptr, nullptr));
    REQUIRE(socket.is_open());
  }
  void grant() {
    const tcp::Region region = tcp::region_of(kShape);
    tcp::Channel channel;
    channel.open(UniqueFd(::dup(socket.get())));
    REQUIRE(tcp::send_control(channel, bytes_of("grant"), &region).is_ok());
    REQUIRE(wait_for_frame(*client) == "grant");
    REQUIRE(client->map_region(kShape).is_ok());
  }
  // So many of them at once.
  void write(const FrameHead& head, size_t body, size_t times = 1) {
    std::vector<std::byte> bytes((sizeof head + body) * times, std::byte{1});
    for (size_t i = 0; i < times; ++i) std::memcpy(bytes.data() + i * (sizeof head + body), &head, sizeof head);
    REQUIRE(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
  }
  std::vector<Event> events() {
    REQUIRE(is_readable(client->data_fd(), 5000));
    client->ready();
    std::vector<Event> events(16);
    events.resize(client->poll(events));
    return events;
  }

  std::string address;
  UniqueFd listener;
  std::unique_ptr<ClientEndpoint> client;
  UniqueFd socket;
};

// Reads what a server says before it sends responses.
void skip_grant(const LooseClient& client) {
  std::array<char, 2 * sizeof(FrameHead) + sizeof(tcp::Region) + 5> said{};
  REQUIRE(::recv(client.socket.get(), said.data(), said.size(), MSG_WAITALL) == said.size());
}

// Memory of a peer whose frames have any length.
struct Memory final : tcp::FrameSink {
  std::byte* place_of(const FrameHead& head) override { return bytes.data() + head.offset; }
  bool take(const FrameHead& head) override {
    came.push_back(head.length);
    return true;
  }
  std::vector<std::byte> bytes;
  std::vector<size_t> came;
};

}  // namespace

TEST_SUITE("control channel over TCP") {
  TEST_CASE("frames arrive whole, in order, both ways; those sent before it is connected, too") {
    TcpPair pair;
    REQUIRE(pair.client->send_frame(bytes_of("hello"), false).is_ok());
    REQUIRE(pair.client->send_frame(bytes_of("again"), false).is_ok());
    CHECK(next_frame(*pair.client) == "");
    CHECK(wait_for_frame(*pair.endpoint) == "hello");
    CHECK_MESSAGE(is_readable(pair.endpoint->control_fd()), "level-triggered: the second frame is still there");
    CHECK(next_frame(*pair.endpoint) == "again");
    CHECK(next_frame(*pair.endpoint) == "");
    REQUIRE(pair.endpoint->send_frame(bytes_of("refusal"), false).is_ok());
    CHECK(wait_for_frame(*pair.client) == "refusal");
  }

  TEST_CASE("sessions of one host count together") {
    TcpPair pair;
    CHECK(pair.endpoint->peer_group() == "127.0.0.1");
    CHECK(pair.endpoint->peer().starts_with("127.0.0.1 port "));
  }

  TEST_CASE("nobody listens: the error names the address") {
    auto connected = connect("tcp:" + free_address());
    REQUIRE(connected.is_ok());
    CHECK(wait_for_frame(*connected.value()).starts_with("error: cannot connect to tcp:127.0.0.1:"));
  }

  TEST_CASE("the peer's end is an error, after what it has said") {
    TcpPair pair;
    CHECK(next_frame(*pair.client) == "");
    REQUIRE(pair.endpoint->send_frame(bytes_of("last words"), false).is_ok());
    pair.endpoint.reset();
    CHECK(wait_for_frame(*pair.client) == "last words");
    CHECK(wait_for_frame(*pair.client).starts_with("error: "));
  }

  TEST_CASE("a region that did not come, or is not of the size agreed, is refused") {
    TcpPair pair;
    CHECK_FALSE(pair.client->map_region(kShape).is_ok());
    pair.Server::open();
    REQUIRE(wait_for_frame(*pair.client) == "grant");
    RegionShape other = kShape;
    other.response_bytes += 1024;
    CHECK_FALSE(pair.client->map_region(other).is_ok());
    CHECK(pair.client->map_region(kShape).is_ok());
  }
}

TEST_SUITE("requests and responses over TCP") {
  TEST_CASE("limits say that results are pushed, and that a fetch would be far") {
    TcpPair pair;
    pair.open();
    CHECK(pair.client->limits().results_are_pushed);
    CHECK(pair.endpoint->limits().results_are_pushed);
    CHECK_FALSE(pair.client->limits().fetch_is_local);
  }

  TEST_CASE("what the client stages and flushes is in request memory, and rings its lane") {
    TcpPair pair;
    pair.open();
    pair.send(2, kSlotOfLane2, "request", 42);
    pair.send(0, 3 * 64, "another", 7);
    pair.client->flush();
    std::vector<Event> events = pair.events();
    if (events.size() < 2) {
      for (const Event& event : pair.events()) events.push_back(event);
    }
    CHECK(events.size() == 2);
    CHECK(observe_word(pair.endpoint->request_memory() + kSlotOfLane2) == 42);
    CHECK(std::memcmp(pair.endpoint->request_memory() + kSlotOfLane2 + 8, "request", 7) == 0);
    CHECK(observe_word(pair.endpoint->request_memory() + 3 * 64) == 7);
    CHECK_MESSAGE(Server::polled(*pair.endpoint).empty(), "each lane once");
  }

  TEST_CASE("what the server delivers is in the client's response image, in order") {
    TcpPair pair;
    pair.open();
    std::memcpy(pair.endpoint->response_memory() + 2048 + 8, "response", 8);
    publish_word(pair.endpoint->response_memory() + 2048, 9);
    publish_word(pair.endpoint->response_memory() + 3072, 10);
    pair.endpoint->deliver(1, 2048, 16);
    pair.endpoint->deliver(1, 3072, 8);
    CHECK(pair.endpoint->flush());
    const std::vector<Event> events = pair.client_events();
    REQUIRE(events.size() == 2);
    CHECK(events[0].kind == Event::Kind::kDelivered);
    CHECK(events[0].lane == 1);
    CHECK(events[0].bytes.data() == pair.client->response_image() + 2048);
    CHECK(std::memcmp(events[0].bytes.data() + 8, "response", 8) == 0);
    CHECK(observe_word(events[1].bytes.data()) == 10);
  }

  TEST_CASE("pieces of a response are sent from where they are") {
    TcpPair pair;
    pair.open();
    REQUIRE(pair.endpoint->limits().sends_pieces);
    std::byte* const slot = pair.endpoint->response_memory() + 2048;
    std::memcpy(slot, "headhead....middle....", 22);
    const std::string first = "ONE.", last = "TWO.";
    const std::array<Piece, 2> pieces{Piece{8, first}, Piece{18, last}};
    pair.endpoint->deliver_pieces(1, 2048, 22, pieces);
    pair.endpoint->deliver(1, 3072, 8);
    CHECK(pair.endpoint->flush());
    std::vector<Event> events = pair.client_events();
    REQUIRE(events.size() == 2);
    CHECK(std::memcmp(events[0].bytes.data() + 8, "ONE.middleTWO.", 14) == 0);
    CHECK_MESSAGE(std::memcmp(slot + 8, "....", 4) == 0, "the slot is not written");
    SUBCASE("and none are left for what is delivered into the same slot") {
      std::memcpy(slot + 8, "next", 4);
      pair.endpoint->deliver(1, 2048, 16);
      CHECK(pair.endpoint->flush());
      events = pair.client_events();
      REQUIRE(events.size() == 1);
      CHECK(std::memcmp(events[0].bytes.data() + 8, "next", 4) == 0);
    }
  }

  TEST_CASE("what the socket has not taken of pieces when flush returns is in the slots: their memory may change") {
    LooseClient raw;
    raw.open();
    skip_grant(raw);
    std::string lent(1000, 'x');
    size_t sent = 0;
    do {
      raw.endpoint->deliver_pieces(0, 0, 1024, std::array{Piece{24, lent}});
      ++sent;
    } while (sent < 100'000 && raw.endpoint->flush());
    REQUIRE(sent < 100'000);
    std::ranges::fill(lent, 'y');
    const size_t frame = sizeof(tcp::FrameHead) + 1024;
    std::vector<char> stream(sent * frame);
    for (size_t got = 0; got < stream.size();) {
      raw.endpoint->flush();
      const ssize_t more = ::recv(raw.socket.get(), stream.data() + got, stream.size() - got, 0);
      REQUIRE(more > 0);
      got += static_cast<size_t>(more);
    }
    for (size_t i = 0; i < sent; ++i) {
      const char* const body = stream.data() + i * frame + sizeof(tcp::FrameHead);
      REQUIRE(std::all_of(body + 24, body + 1024, [](char each) { return each == 'x'; }));
    }
  }

  TEST_CASE("more pieces than one system call takes arrive in their order") {
    LooseClient raw;
    raw.open();
    skip_grant(raw);
    const std::string letters = "abcdefghijklmnopqrstuvwxyz";
    std::vector<Piece> pieces;
    for (size_t at = 24; at + 2 < 1024; at += 24)
      pieces.push_back({at, std::string_view(letters).substr(at / 8 % 25, 2)});
    std::memset(raw.endpoint->response_memory(), '-', kShape.response_bytes);
    const size_t slots = kShape.response_bytes / kShape.reply_bytes;
    for (size_t slot = 0; slot < slots; ++slot) {
      raw.endpoint->deliver_pieces(0, slot * kShape.reply_bytes % kShape.response_bytes, 1024, pieces);
    }
    REQUIRE(raw.endpoint->flush());
    const size_t frame = sizeof(tcp::FrameHead) + 1024;
    std::vector<char> stream(slots * frame);
    REQUIRE(::recv(raw.socket.get(), stream.data(), stream.size(), MSG_WAITALL) == static_cast<ssize_t>(stream.size()));
    for (size_t slot = 0; slot < slots; ++slot) {
      const char* const body = stream.data() + slot * frame + sizeof(tcp::FrameHead);
      for (const Piece& piece : pieces) {
        CHECK(std::string_view(body + piece.offset, 2) == piece.bytes);
        CHECK(body[piece.offset + 2] == '-');
      }
    }
  }

  TEST_CASE("the socket is not looked at before it is ready") {
    TcpPair pair;
    pair.open();
    pair.send(2, kSlotOfLane2, "request", 42);
    pair.client->flush();
    REQUIRE(is_readable(pair.endpoint->data_fd(), 5000));
    CHECK(Server::polled(*pair.endpoint).empty());
    pair.endpoint->ready();
    CHECK(Server::polled(*pair.endpoint).size() == 1);
  }

  TEST_CASE("a peer that goes is reported once by each side's poll") {
    TcpPair pair;
    pair.open();
    SUBCASE("the client") {
      pair.client.reset();
      std::vector<Event> events = pair.events();
      if (events.empty()) events = pair.events();
      CHECK(ends(events));
      pair.endpoint->ready();
      CHECK(Server::polled(*pair.endpoint).empty());
    }
    SUBCASE("the server") {
      pair.endpoint.reset();
      CHECK(ends(pair.client_events()));
    }
  }
}

TEST_SUITE("hostile peers over TCP") {
  TEST_CASE("a frame may come byte by byte") {
    LooseClient raw;
    raw.open();
    const FrameHead head{.kind = FrameKind::kRequest, .lane = 2, .offset = kSlotOfLane2, .length = 12};
    std::array<std::byte, sizeof head + 12> bytes{};
    std::memcpy(bytes.data(), &head, sizeof head);
    bytes[sizeof head] = std::byte{5};
    bytes.back() = std::byte{6};
    for (const std::byte& byte : bytes) {
      CHECK(observe_word(raw.endpoint->request_memory() + kSlotOfLane2) == 0);
      raw.write(&byte, 1);
      const size_t found = raw.events().size();
      CHECK(found == (&byte == &bytes.back() ? 1 : 0));
    }
    CHECK(observe_word(raw.endpoint->request_memory() + kSlotOfLane2) == 5);
    CHECK(raw.endpoint->request_memory()[kSlotOfLane2 + 11] == std::byte{6});
  }

  TEST_CASE("long bodies and short ones behind each other come as they were, however the socket cuts them") {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0);
    tcp::Channel from;
    tcp::Channel to;
    from.open(UniqueFd(fds[0]));
    to.open(UniqueFd(fds[1]));
    const std::vector<size_t> lengths = {100'000, 8, 40, 135'168, 33'000, 16, 32'768, 32'776, 135'168, 12, 8};
    constexpr size_t kSlot = 135'168;
    std::vector<std::byte> sent(lengths.size() * kSlot);
    for (size_t at = 0; at < sent.size(); ++at) sent[at] = static_cast<std::byte>(at * 7 % 251);
    tcp::FrameWriter writer;
    writer.set_capacity(lengths.size());
    for (size_t i = 0; i < lengths.size(); ++i) {
      const auto offset = static_cast<uint32_t>(i * kSlot);
      const auto length = static_cast<uint32_t>(lengths[i]);
      REQUIRE(writer.add({.kind = FrameKind::kResponse, .offset = offset, .length = length}, sent.data() + offset));
    }
    Memory memory;
    memory.bytes.resize(sent.size());
    tcp::FrameReader reader;
    while (memory.came.size() < lengths.size()) {
      REQUIRE(writer.flush(from) != tcp::FrameWriter::Sent::kFailed);
      REQUIRE(is_readable(to.fd(), 5000));
      const auto found = reader.read_some(to, memory);
      REQUIRE((found == tcp::FrameReader::Found::kNothing || found == tcp::FrameReader::Found::kMore));
    }
    CHECK(memory.came == lengths);
    for (size_t i = 0; i < lengths.size(); ++i) {
      CAPTURE(i);
      CHECK(std::memcmp(memory.bytes.data() + i * kSlot, sent.data() + i * kSlot, lengths[i]) == 0);
    }
  }

  TEST_CASE("a frame without a place ends the session") {
    LooseClient raw;
    raw.open();
    const auto bytes = static_cast<uint32_t>(kShape.request_bytes);
    const std::vector<FrameHead> wrong = {
        {.kind = FrameKind::kRequest, .lane = 3, .offset = 0, .length = 8},
        {.kind = FrameKind::kRequest, .lane = 0, .offset = bytes, .length = 8},
        {.kind = FrameKind::kRequest, .lane = 0, .offset = bytes - 8, .length = 16},
        {.kind = FrameKind::kRequest, .lane = 0, .offset = 0xfffffff8, .length = 0xfffffff8},
        {.kind = FrameKind::kRequest, .lane = 0, .offset = 4, .length = 8},
        {.kind = FrameKind::kRequest, .lane = 0, .offset = 0, .length = 7},
        {.kind = FrameKind::kRequest, .reserved = 1, .lane = 0, .offset = 0, .length = 8},
        {.kind = FrameKind::kResponse, .lane = 0, .offset = 0, .length = 8},
        {.kind = FrameKind::kRegion, .lane = 0, .offset = 0, .length = sizeof(tcp::Region)},
        {.kind = FrameKind::kRing, .lane = 3, .offset = 0, .length = 0},
        {.kind = FrameKind::kControl, .lane = 0, .offset = 0, .length = 513},
        {.kind = static_cast<FrameKind>(99), .lane = 0, .offset = 0, .length = 0},
    };
    for (size_t i = 0; i < wrong.size(); ++i) {
      CAPTURE(i);
      LooseClient each;
      each.open();
      each.write(wrong[i]);
      CHECK(ends(each.events()));
      CHECK(each.endpoint->failure() == "the peer sent a frame that has no place");
    }
  }

  TEST_CASE("a request before the grant, or another protocol, is refused") {
    LooseClient raw;
    SUBCASE("a request") {
      raw.write({.kind = FrameKind::kRequest, .lane = 0, .offset = 0, .length = 8});
    }
    SUBCASE("memcached's text protocol") {
      raw.write("get a\r\nget b\r\n", 14);
    }
    CHECK(wait_for_frame(*raw.endpoint) == "error: the peer speaks another protocol");
  }

  TEST_CASE("half of a frame, and then the end of the connection, is no frame") {
    LooseClient raw;
    raw.open();
    raw.write({.kind = FrameKind::kRequest, .lane = 2, .offset = kSlotOfLane2, .length = 64});
    raw.write("0123456789abcdef", 16);
    std::vector<Event> events = raw.events();
    CHECK(events.empty());
    CHECK_MESSAGE(observe_word(raw.endpoint->request_memory() + kSlotOfLane2) == 0, "the first word is published last");
    raw.socket.reset();
    CHECK(ends(raw.events()));
  }

  TEST_CASE("a response without a place ends the client's session") {
    const std::vector<FrameHead> wrong = {
        {.kind = FrameKind::kResponse, .lane = 3, .offset = 0, .length = 8},
        {.kind = FrameKind::kResponse, .lane = 0, .offset = 2048, .length = 8},
        {.kind = FrameKind::kResponse, .lane = 1, .offset = 2056, .length = 8},
        {.kind = FrameKind::kResponse, .lane = 1, .offset = 2048, .length = 1025},
        {.kind = FrameKind::kResponse, .lane = 1, .offset = 2048, .length = 7},
        {.kind = FrameKind::kResponse, .lane = 2, .offset = 0xfffffc00, .length = 1024},
        {.kind = FrameKind::kRequest, .lane = 0, .offset = 0, .length = 8},
        {.kind = FrameKind::kControl, .lane = 0, .offset = 0, .length = 8},
        {.kind = FrameKind::kRegion, .lane = 0, .offset = 0, .length = sizeof(tcp::Region)},
    };
    for (size_t i = 0; i < wrong.size(); ++i) {
      CAPTURE(i);
      LooseServer each;
      each.grant();
      each.write(wrong[i], 8);
      CHECK(ends(each.events()));
      CHECK(each.client->failure() == "the backend delivered to where there is no slot");
    }
  }

  TEST_CASE("more responses at once than there are slots end the client's session") {
    LooseServer raw;
    raw.grant();
    constexpr size_t kSlots = kShape.response_bytes / kShape.reply_bytes;
    raw.write({.kind = FrameKind::kResponse, .lane = 1, .offset = 2048, .length = 8}, 8, kSlots + 1);
    const std::vector<Event> events = raw.events();
    REQUIRE(events.size() == kSlots + 1);
    CHECK(events[kSlots - 1].kind == Event::Kind::kDelivered);
    CHECK(events[kSlots].kind == Event::Kind::kClosed);
  }

  TEST_CASE("a client that takes no responses ends its session, and blocks nobody") {
    LooseClient raw;
    raw.open();
    for (int i = 0; i < 100'000 && raw.endpoint->flush(); ++i) raw.endpoint->deliver(0, 0, 1024);
    CHECK_FALSE_MESSAGE(raw.endpoint->flush(), "the socket is full");
    for (size_t slots = 0; slots <= kShape.response_bytes / kShape.reply_bytes; ++slots) {
      raw.endpoint->deliver(0, 0, 1024);
    }
    CHECK(ends(Server::polled(*raw.endpoint)));
  }
}
