// Both ends of a TCP endpoint in one process, and clients that write to the socket what they like.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "transport/tcp/frames.h"
#include "transport_pair.h"

namespace egret::transport {

inline std::string free_address() {
  const base::UniqueFd probe(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at;
  REQUIRE(::bind(probe.get(), reinterpret_cast<sockaddr*>(&at), length) == 0);
  REQUIRE(::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&at), &length) == 0);
  return "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
}

// A listener, and a server's endpoint for whoever connects first.
struct Server {
  explicit Server(const ListenOptions& options = {}) : address(free_address()) {
    auto listening = listen("tcp:" + address, options);
    REQUIRE_MESSAGE(listening.is_ok(), listening.status().message());
    listener = std::move(listening.value());
  }
  void accept() {
    REQUIRE(is_readable(listener->fd(), 5000));
    auto accepted = listener->accept();
    REQUIRE_MESSAGE(accepted.is_ok(), accepted.status().message());
    endpoint = std::move(accepted.value());
    REQUIRE(endpoint != nullptr);
  }
  void open() {
    REQUIRE(endpoint->create_region(kShape).is_ok());
    REQUIRE(endpoint->send_frame(bytes_of("grant"), true).is_ok());
  }
  // What one readiness of the socket brings.
  std::vector<Event> events() {
    REQUIRE(is_readable(endpoint->data_fd(), 5000));
    endpoint->ready();
    return polled(*endpoint);
  }
  static std::vector<Event> polled(ServerEndpoint& endpoint) {
    std::vector<Event> events(16);
    events.resize(endpoint.poll(events));
    return events;
  }

  std::string address;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<ServerEndpoint> endpoint;
};

inline std::string wait_for_frame(ControlChannel& channel) {
  for (int tries = 0; tries < 100; ++tries) {
    if (const std::string frame = next_frame(channel); !frame.empty()) return frame;
    if (!is_readable(channel.control_fd(), 5000)) return "";
  }
  return "";
}

struct TcpPair : Server {
  explicit TcpPair(const ListenOptions& listening = {}, const ConnectOptions& connecting = {}) : Server(listening) {
    auto connected = connect("tcp:" + address, connecting);
    REQUIRE_MESSAGE(connected.is_ok(), connected.status().message());
    client = std::move(connected.value());
    accept();
  }
  void open() {
    Server::open();
    REQUIRE(wait_for_frame(*client) == "grant");
    REQUIRE(client->map_region(kShape).is_ok());
    REQUIRE(client->send_frame(bytes_of("ready"), true).is_ok());
  }
  void send(uint32_t lane, size_t offset, std::string_view text, uint64_t word) {
    std::memcpy(client->request_image() + offset + 8, text.data(), text.size());
    client->stage_write(lane, offset, 8 + text.size(), word);
  }
  std::vector<Event> client_events() {
    REQUIRE(is_readable(client->data_fd(), 5000));
    client->ready();
    std::vector<Event> events(16);
    events.resize(client->poll(events));
    return events;
  }

  std::unique_ptr<ClientEndpoint> client;
};

// A client that writes to the socket what it likes.
struct LooseClient : Server {
  explicit LooseClient(const ListenOptions& options = {}) : Server(options), socket(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
    REQUIRE(::connect(socket.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    accept();
  }
  void write(const void* bytes, size_t length) {
    REQUIRE(::send(socket.get(), bytes, length, MSG_NOSIGNAL) == static_cast<ssize_t>(length));
  }
  void write(const tcp::FrameHead& head) { write(&head, sizeof head); }

  base::UniqueFd socket;
};

inline bool ends(const std::vector<Event>& events) {
  return events.size() == 1 && events[0].kind == Event::Kind::kClosed;
}

}  // namespace egret::transport
