// A name server for tests, on loopback, over UDP and TCP, on the event loop of the test itself.
//
//   server.set("a.pool", kA, {a("10.0.0.1")});   resolver ─ question ─▶ NameServer ─ what was set for name and type ─▶ answer
//
// What was not set: "no such name" if the name is not known at all, else "no such records".
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "events/event.h"

namespace egret::dns {

inline constexpr uint16_t kA = 1;
inline constexpr uint16_t kCname = 5;
inline constexpr uint16_t kAaaa = 28;
inline constexpr uint16_t kSrv = 33;

inline std::string u16(size_t number) {
  return {static_cast<char>(number >> 8), static_cast<char>(number)};
}

inline std::string u32(uint32_t number) {
  return u16(number >> 16) + u16(number & 0xffff);
}

// "a.pool" as it stands in a message. A dot within a label is written as \x01.
inline std::string wire_name(std::string_view name) {
  std::string wire;
  while (!name.empty()) {
    const std::string_view label = name.substr(0, name.find('.'));
    name.remove_prefix(std::min(name.size(), label.size() + 1));
    wire += static_cast<char>(label.size());
    for (const char c : label) wire += c == '\x01' ? '.' : c;
  }
  return wire + '\0';
}

struct Record {
  std::string owner;  // empty: the name that was asked for
  uint16_t type = kA;
  uint32_t ttl = 60;
  std::string data;
};

inline Record a(const std::string& address, uint32_t ttl = 60, const std::string& owner = "") {
  std::string data(sizeof(in_addr), '\0');
  REQUIRE(::inet_pton(AF_INET, address.c_str(), data.data()) == 1);
  return {owner, kA, ttl, data};
}

inline Record aaaa(const std::string& address, uint32_t ttl = 60, const std::string& owner = "") {
  std::string data(sizeof(in6_addr), '\0');
  REQUIRE(::inet_pton(AF_INET6, address.c_str(), data.data()) == 1);
  return {owner, kAaaa, ttl, data};
}

inline Record srv(const std::string& target, uint16_t port, uint16_t weight = 0, uint16_t priority = 0,
                  uint32_t ttl = 60) {
  return {"", kSrv, ttl, u16(priority) + u16(weight) + u16(port) + wire_name(target)};
}

enum class Outcome { kAnswer, kServerFails, kSilence, kGarbage, kTruncated };

struct Answer {
  std::vector<Record> records;
  std::vector<Record> additional;
  Outcome outcome = Outcome::kAnswer;
};

inline std::string message_of(std::string_view id, std::string_view question, const Answer& answer, size_t code,
                              bool truncated) {
  std::string message(id);
  message += u16(0x8180U | code | (truncated ? 0x0200U : 0U));
  message +=
      u16(1) + u16(truncated ? 0 : answer.records.size()) + u16(0) + u16(truncated ? 0 : answer.additional.size());
  message += question;
  if (truncated) return message;
  for (const std::vector<Record>* section : {&answer.records, &answer.additional}) {
    for (const Record& record : *section) {
      message += record.owner.empty() ? u16(0xc00c) : wire_name(record.owner);
      message += u16(record.type) + u16(1) + u32(record.ttl) + u16(record.data.size()) + record.data;
    }
  }
  return message;
}

class NameServer {
 public:
  explicit NameServer(events::EventLoop& loop) : loop_(loop) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    // The port of the one may be taken for the other: then the next try gets others.
    for (int tries = 0; tries < 50; ++tries) {
      socklen_t size = sizeof any;
      any.sin_port = 0;
      udp_.reset(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0));
      tcp_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
      REQUIRE(::bind(udp_.get(), reinterpret_cast<sockaddr*>(&any), size) == 0);
      REQUIRE(::getsockname(udp_.get(), reinterpret_cast<sockaddr*>(&any), &size) == 0);
      if (::bind(tcp_.get(), reinterpret_cast<sockaddr*>(&any), size) == 0) break;
    }
    REQUIRE(::listen(tcp_.get(), 16) == 0);
    port_ = ::ntohs(any.sin_port);
    on_udp_ = events::Event::on_fd<&NameServer::read_udp>(loop, udp_.get(), events::kRead | events::kPersist, *this);
    on_tcp_ = events::Event::on_fd<&NameServer::accept>(loop, tcp_.get(), events::kRead | events::kPersist, *this);
    REQUIRE(on_udp_.add());
    REQUIRE(on_tcp_.add());
  }

  // As the option dns_servers has it.
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  void set(const std::string& name, uint16_t type, std::vector<Record> records, std::vector<Record> additional = {}) {
    answers_[name][type] = {std::move(records), std::move(additional), Outcome::kAnswer};
  }
  // Other than to answer what was set.
  void behave(const std::string& name, uint16_t type, Outcome outcome) { answers_[name][type].outcome = outcome; }
  void forget(const std::string& name) { answers_.erase(name); }

  size_t asked(const std::string& name, uint16_t type) const {
    const auto found = counts_.find({name, type});
    return found == counts_.end() ? 0 : found->second;
  }
  size_t udp_questions() const { return udp_questions_; }
  size_t tcp_questions() const { return tcp_questions_; }

 private:
  // A client over TCP: answers are written at once, for the loop of the test reads them.
  struct Client {
    NameServer& server;
    base::UniqueFd fd;
    std::string input;
    std::string output;
    events::Event readable;
    events::Event writable;

    void read() { server.read_tcp(*this); }
    void write() { server.write_tcp(*this); }
  };

  void read_udp() {
    std::array<char, 4096> bytes{};
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    const ssize_t got =
        ::recvfrom(udp_.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&peer), &size);
    if (got <= 0) return;
    ++udp_questions_;
    const std::string answer = answer_to({bytes.data(), static_cast<size_t>(got)}, true);
    if (!answer.empty()) {
      ::sendto(udp_.get(), answer.data(), answer.size(), 0, reinterpret_cast<sockaddr*>(&peer), size);
    }
  }

  void accept() {
    const int fd = ::accept4(tcp_.get(), nullptr, nullptr, SOCK_NONBLOCK);
    if (fd < 0) return;
    Client& client = clients_.emplace_back(Client{*this, base::UniqueFd(fd), {}, {}, {}, {}});
    client.readable = events::Event::on_fd<&Client::read>(loop_, fd, events::kRead | events::kPersist, client);
    client.writable = events::Event::on_fd<&Client::write>(loop_, fd, events::kWrite | events::kPersist, client);
    REQUIRE(client.readable.add());
  }

  void read_tcp(Client& client) {
    std::array<char, 4096> bytes{};
    const ssize_t got = ::recv(client.fd.get(), bytes.data(), bytes.size(), 0);
    if (got <= 0) {
      client.readable.del();
      client.writable.del();
      return;
    }
    client.input.append(bytes.data(), static_cast<size_t>(got));
    while (client.input.size() >= 2) {
      const size_t size =
          static_cast<unsigned char>(client.input[0]) * 256U + static_cast<unsigned char>(client.input[1]);
      if (client.input.size() < 2 + size) break;
      ++tcp_questions_;
      const std::string answer = answer_to(std::string_view(client.input).substr(2, size), false);
      client.input.erase(0, 2 + size);
      if (!answer.empty()) client.output += u16(answer.size()) + answer;
    }
    write_tcp(client);
  }

  static void write_tcp(Client& client) {
    const ssize_t sent = ::send(client.fd.get(), client.output.data(), client.output.size(), MSG_NOSIGNAL);
    if (sent > 0) client.output.erase(0, static_cast<size_t>(sent));
    if (client.output.empty()) {
      client.writable.del();
    } else {
      REQUIRE(client.writable.add());
    }
  }

  // Empty: no answer is sent.
  std::string answer_to(std::string_view question, bool over_udp) {
    constexpr size_t kHead = 12;
    constexpr size_t kMaxUdp = 1232;
    if (question.size() < kHead + 5) return {};
    std::string name;
    size_t at = kHead;
    while (at < question.size() && question[at] != '\0') {
      const size_t length = static_cast<unsigned char>(question[at]);
      name += (name.empty() ? "" : ".") + std::string(question.substr(at + 1, length));
      at += length + 1;
    }
    const uint16_t type = static_cast<uint16_t>(static_cast<unsigned char>(question[at + 1]) * 256U +
                                                static_cast<unsigned char>(question[at + 2]));
    ++counts_[{name, type}];
    const std::string_view id = question.substr(0, 2);
    const std::string_view asked = question.substr(kHead, at + 5 - kHead);
    const auto known = answers_.find(name);
    if (known == answers_.end()) return message_of(id, asked, {}, 3, false);
    const auto found = known->second.find(type);
    if (found == known->second.end()) return message_of(id, asked, {}, 0, false);
    const Answer& answer = found->second;
    switch (answer.outcome) {
      case Outcome::kServerFails:
        return message_of(id, asked, {}, 2, false);
      case Outcome::kSilence:
        return {};
      case Outcome::kGarbage:
        return message_of(id, asked, answer, 0, false).substr(0, kHead + asked.size() + 5);
      case Outcome::kAnswer:
      case Outcome::kTruncated:
        break;
    }
    std::string message = message_of(id, asked, answer, 0, false);
    if (over_udp && message.size() > kMaxUdp) return message_of(id, asked, answer, 0, true);
    if (answer.outcome == Outcome::kTruncated) message[2] = static_cast<char>(message[2] | 0x02);
    return message;
  }

  events::EventLoop& loop_;
  base::UniqueFd udp_;
  base::UniqueFd tcp_;
  uint16_t port_ = 0;
  std::map<std::string, std::map<uint16_t, Answer>> answers_;
  std::map<std::pair<std::string, uint16_t>, size_t> counts_;
  size_t udp_questions_ = 0;
  size_t tcp_questions_ = 0;
  std::list<Client> clients_;
  events::Event on_udp_;
  events::Event on_tcp_;
};

}  // namespace egret::dns
