// The admin address: who gets which page, and that nobody who is slow, silent, many or hostile takes another's place.
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "admin/http_server.h"
#include "base/unique_fd.h"
#include "events/event.h"

using namespace egret::admin;
using egret::base::UniqueFd;

namespace {

// A server on a port of its own, with one page, a handler that answers and one that keeps its requests.
struct Server {
  explicit Server(const HttpServer::TimeLimits& time_limits = {}, const std::string& host = "127.0.0.1") {
    http.emplace(loop, time_limits);
    http->serve("/page", {.body = "<p>a page", .content_security_policy = "default-src 'self'"});
    http->serve("/now", [](HttpReply reply) { reply.send({.body = "at once\n"}); });
    http->serve("/later", [this](HttpReply reply) { kept.push_back(std::move(reply)); });
    http->serve("/never", [](const HttpReply&) {});
    http->serve("/large", [](HttpReply reply) { reply.send({.body = std::string(8 << 20, 'x')}); });
    REQUIRE(http->listen({.address = host + ":0", .is_required = true, .hosts = {"Egret.example"}}).is_ok());
    const std::string address = http->addresses().at(0);
    port = static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  }

  // Lets the server work until the condition holds; false: it never did.
  bool until(const std::function<bool()>& condition) {
    for (int i = 0; i < 10'000; ++i) {
      loop.run_once(false);
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  egret::events::EventLoop loop;
  std::vector<HttpReply> kept;
  std::optional<HttpServer> http;
  uint16_t port = 0;
};

class Client {
 public:
  explicit Client(Server& server) : server_(server), socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(server.port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
  }

  void send(const std::string& text) const {
    REQUIRE(::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
  }
  void send_what_is_taken(const std::string& text) const {
    [[maybe_unused]] const ssize_t ignored =
        ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  // What has come so far.
  const std::string& received() {
    char block[65536];
    ssize_t got = 0;
    while ((got = ::recv(socket_.get(), block, sizeof block, MSG_DONTWAIT)) > 0) {
      text_.append(block, static_cast<size_t>(got));
    }
    ended_ |= got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    return text_;
  }
  bool has_ended() {
    received();
    return ended_;
  }
  // One whole answer.
  std::string answer_to(const std::string& request) {
    send(request);
    text_.clear();
    CHECK(server_.until([&] { return is_whole(received()) || ended_; }));
    return text_;
  }

 private:
  static bool is_whole(const std::string& text) {
    const size_t end = text.find("\r\n\r\n");
    const size_t length = text.find("Content-Length: ");
    if (end == std::string::npos || length == std::string::npos) return false;
    return text.size() >= end + 4 + std::stoul(text.substr(length + 16));
  }

  Server& server_;
  UniqueFd socket_;
  std::string text_;
  bool ended_ = false;
};

std::string get(const std::string& path, const std::string& headers = "Host: 127.0.0.1\r\n") {
  return "GET " + path + " HTTP/1.1\r\n" + headers + "\r\n";
}

std::string status_of(const std::string& answer) {
  return answer.size() < 12 ? answer : answer.substr(9, 3);
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a page is served with its type and a strict policy, and may not be kept") {
  Server server;
  const std::string answer = Client(server).answer_to(get("/page"));
  CHECK(status_of(answer) == "200");
  CHECK(has(answer, "Content-Type: text/html; charset=utf-8\r\n"));
  CHECK(has(answer, "Content-Security-Policy: default-src 'self'\r\n"));
  CHECK(has(answer, "X-Content-Type-Options: nosniff\r\n"));
  CHECK(has(answer, "Cache-Control: no-store\r\n"));
  CHECK(answer.ends_with("\r\n\r\n<p>a page"));
}

TEST_CASE("a handler answers at once, and one connection asks again and again") {
  Server server;
  Client client(server);
  for (int i = 0; i < 3; ++i) CHECK(client.answer_to(get("/now?ignored=1")).ends_with("\r\n\r\nat once\n"));
  CHECK_FALSE(client.has_ended());
}

TEST_CASE("Connection: close and HTTP/1.0 end the connection after the answer") {
  Server server;
  for (const std::string& request : {get("/now", "Connection: close\r\n"), std::string("GET /now HTTP/1.0\r\n\r\n")}) {
    Client client(server);
    CHECK(client.answer_to(request).ends_with("at once\n"));
    CHECK(server.until([&] { return client.has_ended(); }));
  }
}

TEST_CASE("HEAD has the headers of GET and no body") {
  Server server;
  Client client(server);
  client.send("HEAD /now HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(server.until([&] { return client.received().ends_with("\r\n\r\n"); }));
  CHECK(has(client.received(), "Content-Length: 8\r\n"));
  CHECK(client.answer_to(get("/now")).starts_with("HTTP/1.1 200"));  // nothing was left behind
}

TEST_CASE("what is not there is 404, and any other method 405") {
  Server server;
  CHECK(status_of(Client(server).answer_to(get("/nowhere"))) == "404");
  CHECK(status_of(Client(server).answer_to(get("/now/"))) == "404");
  CHECK(status_of(Client(server).answer_to(get("/../now"))) == "404");
  CHECK(status_of(Client(server).answer_to(get("http://127.0.0.1/now"))) == "404");
  for (const std::string method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get", "BREW"}) {
    CAPTURE(method);
    const std::string answer = Client(server).answer_to(method + " /now HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK(status_of(answer) == "405");
    CHECK(has(answer, "Allow: GET, HEAD\r\n"));
  }
}

TEST_CASE("a page of another site cannot reach the server by a name of its own, whatever it is bound to") {
  std::string bound;
  SUBCASE("loopback") {
    bound = "127.0.0.1";
  }
  SUBCASE("every address") {
    bound = "0.0.0.0";
  }
  Server server({}, bound);
  const auto status = [&](const std::string& host) {
    return status_of(Client(server).answer_to(get("/now", "Host: " + host + "\r\n")));
  };
  for (const std::string good : {"127.0.0.1", "127.0.0.1:11280", "localhost", "LocalHost:80", "[::1]:11280", "[::1]",
                                 "10.1.2.3:80", "egret.example", "EGRET.example:11280"}) {
    CAPTURE(good);
    CHECK(status(good) == "200");
  }
  for (const std::string bad :
       {"evil.example", "evil.example:11280", "localhost.evil.example", "127.0.0.1.evil.example", "[::1].evil.example",
        "[evil]", "1.2.3", "@", ":11280", "egret.example.evil.example", "evil.egret.example"}) {
    CAPTURE(bad);
    CHECK(status(bad) == "403");
  }
  server.http->allow_hosts({"evil.example"});
  CHECK(status("evil.example") == "200");
  CHECK(status("egret.example") == "403");
}

TEST_CASE("an answer may come later, while others are answered") {
  Server server;
  Client waiting(server);
  waiting.send(get("/later"));
  REQUIRE(server.until([&] { return server.kept.size() == 1; }));
  CHECK(status_of(Client(server).answer_to(get("/now"))) == "200");
  CHECK(waiting.received().empty());
  server.kept.at(0).send({.status = 503, .body = "not well\n"});
  CHECK(server.until([&] { return waiting.received().ends_with("not well\n"); }));
  CHECK(status_of(waiting.received()) == "503");
  CHECK(status_of(waiting.answer_to(get("/now"))) == "200");
}

TEST_CASE("a request that its handler drops is answered 503") {
  Server server;
  CHECK(status_of(Client(server).answer_to(get("/never"))) == "503");
}

TEST_CASE("a client that goes away before its answer is there harms nobody") {
  Server server;
  for (int i = 0; i < 20; ++i) Client(server).send(get("/later"));
  REQUIRE(server.until([&] { return server.kept.size() == 20; }));
  for (HttpReply& reply : server.kept) reply.send({.body = std::string(1 << 20, 'x')});
  CHECK(status_of(Client(server).answer_to(get("/now"))) == "200");
}

TEST_CASE("whoever waits when the server ends is told so; an answer after that goes nowhere") {
  Server server;
  Client client(server);
  client.send(get("/later"));
  REQUIRE(server.until([&] { return server.kept.size() == 1; }));
  server.http.reset();
  CHECK(server.until([&] { return client.has_ended(); }));
  CHECK(status_of(client.received()) == "503");
  server.kept.at(0).send({.body = "too late\n"});
}

TEST_CASE("whoever asks while the server ends is not made to wait") {
  Server server;
  Client earlier(server);
  earlier.send(get("/later") + get("/later"));
  REQUIRE(server.until([&] { return server.kept.size() == 1; }));
  Client client(server);
  CHECK(status_of(client.answer_to(get("/now"))) == "200");
  client.send(get("/later") + get("/later"));
  server.http.reset();
  for (Client* each : {&earlier, &client}) CHECK(server.until([&] { return each->has_ended(); }));
  CHECK(server.kept.size() == 1);
}

TEST_CASE("requests in one piece, and byte by byte, are answered alike") {
  Server server;
  Client together(server);
  together.send(get("/now") + get("/page") + get("/nowhere"));
  CHECK(server.until([&] { return together.received().ends_with("there is nothing here\n"); }));
  Client apart(server);
  for (const char byte : get("/now")) {
    apart.send(std::string(1, byte));
    server.loop.run_once(false);
  }
  CHECK(server.until([&] { return apart.received().ends_with("at once\n"); }));
}

TEST_CASE("what is no request, or too large a one, is refused and the connection closed") {
  Server server;
  const std::string many = [] {
    std::string headers;
    for (int i = 0; i < 4000; ++i) headers += "X-" + std::to_string(i) + ": y\r\n";
    return headers;
  }();
  const std::string requests[] = {
      "\x16\x03\x01\x02 a TLS hello\r\n\r\n",
      "GET\r\n\r\n",
      "GET /now HTTP/9.9\r\n\r\n",
      "GET /" + std::string(100'000, 'a') + " HTTP/1.1\r\n\r\n",
      get("/now", many),
      "GET /now HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
      "GET /now HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n"};
  for (const std::string& request : requests) {
    CAPTURE(request.substr(0, 40));
    Client client(server);
    client.send_what_is_taken(request);
    CHECK(server.until([&] { return client.has_ended(); }));
    CHECK((client.received().empty() || client.received().starts_with("HTTP/1.1 4") ||
           client.received().starts_with("HTTP/1.1 5")));
  }
  CHECK(status_of(Client(server).answer_to(get("/now"))) == "200");
}

TEST_CASE("a body that nobody asked for is passed over") {
  Server server;
  Client client(server);
  const std::string request = "GET /now HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n12345";
  CHECK(status_of(client.answer_to(request)) == "200");
  CHECK(status_of(client.answer_to(get("/now"))) == "200");
}

TEST_CASE("clients that say nothing, half of it, or do not read what they are sent, take nobody's place") {
  Server server;
  std::vector<std::unique_ptr<Client>> others;
  for (size_t i = 0; i < 3 * HttpServer::kMaxConnections; ++i) {
    others.push_back(std::make_unique<Client>(server));
    if (i % 3 == 1) others.back()->send("GET /now HTTP/1.1\r\nHos");
    if (i % 3 == 2) others.back()->send(get("/large"));
    if (i % 16 == 0) CHECK(status_of(Client(server).answer_to(get("/now"))) == "200");
  }
  CHECK(status_of(Client(server).answer_to(get("/now"))) == "200");
  // Of those that are too many the oldest have gone.
  CHECK(server.until([&] { return others.front()->has_ended(); }));
}

TEST_CASE("whoever does not finish a request, however busily, is let go") {
  Server server({.first_request_seconds = 1, .next_request_seconds = 1});
  Client silent(server);
  Client half(server);
  half.send("GET /now HTTP/1.1\r\n");
  Client garbage(server);
  garbage.send(std::string("\0\1\2\3\r\n\r\n", 8));
  Client second(server);
  CHECK(status_of(second.answer_to(get("/now"))) == "200");
  second.send("GET /no");
  int looks = 0;
  CHECK(server.until([&] {
    if (++looks % 100 == 0) half.send_what_is_taken("y");  // never silent for long, nor too large
    return half.has_ended() && silent.has_ended() && garbage.has_ended() && second.has_ended();
  }));
}

TEST_CASE("those who wait for an answer are not turned out for newcomers") {
  Server server;
  Client waiting(server);
  waiting.send(get("/later"));
  REQUIRE(server.until([&] { return server.kept.size() == 1; }));
  std::vector<std::unique_ptr<Client>> others;
  for (size_t i = 0; i < 2 * HttpServer::kMaxConnections; ++i) {
    others.push_back(std::make_unique<Client>(server));
    server.loop.run_once(false);
  }
  server.kept.at(0).send({.body = "here it is\n"});
  CHECK(server.until([&] { return waiting.received().ends_with("here it is\n"); }));
}

TEST_CASE("a Unix socket serves whoever can reach it, under the same names, and its file goes with the server") {
  char folder[] = "/tmp/egret-admin-XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  const std::string path = std::string(folder) + "/admin.sock";
  egret::events::EventLoop loop;
  std::optional<HttpServer> http;
  http.emplace(loop);
  http->serve("/now", [](HttpReply reply) { reply.send({.body = "at once\n"}); });
  REQUIRE(http->listen({.address = "unix:" + path, .is_required = true}).is_ok());
  CHECK(http->addresses() == std::vector<std::string>{"unix:" + path});

  const auto status_for = [&](const std::string& host) {
    const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    path.copy(at.sun_path, sizeof at.sun_path - 1);
    REQUIRE(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
    const std::string request = get("/now", "Host: " + host + "\r\n");
    REQUIRE(::send(socket.get(), request.data(), request.size(), 0) == static_cast<ssize_t>(request.size()));
    char answer[1024] = "";
    for (int i = 0; i < 5000 && ::recv(socket.get(), answer, sizeof answer - 1, MSG_DONTWAIT) <= 0; ++i) {
      loop.run_once(false);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return status_of(answer);
  };
  CHECK(status_for("localhost") == "200");
  CHECK(status_for("any.name") == "403");

  HttpServer second(loop);
  CHECK_FALSE(second.listen({.address = "unix:" + path, .is_required = true}).is_ok());  // it is in use
  http.reset();
  struct stat info {};
  CHECK(::stat(path.c_str(), &info) != 0);
  CHECK(::rmdir(folder) == 0);
}

TEST_CASE("an address that is taken is an error for whoever asked for it, and none for a default") {
  Server server;
  egret::events::EventLoop loop;
  HttpServer second(loop);
  const std::string taken = server.http->addresses().at(0);
  const auto refused = second.listen({.address = taken, .is_required = true});
  CHECK_FALSE(refused.is_ok());
  CHECK(has(refused.message(), taken));
  CHECK(second.listen({.address = taken, .is_required = false}).is_ok());
  CHECK(second.addresses().empty());
}
