#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/socket.h>

#include "base/unique_fd.h"
#include "bench/client/address.h"
#include "bench_library/side.h"

namespace egret::bench_library {

namespace {

using base::Status;

constexpr size_t kBuffer = 256 << 10;
constexpr std::string_view kEnd = "END\r\n";

class SocketSide final : public Side {
 public:
  SocketSide(std::string name, base::UniqueFd socket)
      : name_(std::move(name)), socket_(std::move(socket)), in_(std::make_unique<char[]>(kBuffer)) {}

  const std::string& name() const override { return name_; }
  base::Expected<std::unique_ptr<Side>> another() const override { return socket_side(name_); }

  Status set(const std::string& key, const std::string& value) override {
    out_ = "set " + key + " 0 0 " + std::to_string(value.size()) + "\r\n" + value + "\r\n";
    return ask("STORED\r\n");
  }

  Status get(const std::string& key, const std::string& value) override {
    out_.assign("get ").append(key).append("\r\n");
    expected_.clear();
    expect(key, value);
    expected_ += kEnd;
    return ask(expected_);
  }

  Status multiget(const std::vector<std::string>& keys, const std::vector<std::string>& values) override {
    out_ = "get";
    expected_.clear();
    for (size_t i = 0; i < keys.size(); ++i) {
      out_.append(" ").append(keys[i]);
      expect(keys[i], values[i]);
    }
    out_ += "\r\n";
    expected_ += kEnd;
    return ask(expected_);
  }

  Status pipelined(const std::vector<std::string>& keys, const std::vector<std::string>& values) override {
    out_.clear();
    expected_.clear();
    for (size_t i = 0; i < keys.size(); ++i) {
      out_.append("get ").append(keys[i]).append("\r\n");
      expect(keys[i], values[i]);
      expected_ += kEnd;
    }
    return ask(expected_);
  }

 private:
  void expect(const std::string& key, const std::string& value) {
    expected_.append("VALUE ").append(key).append(" 0 ").append(std::to_string(value.size())).append("\r\n");
    expected_.append(value).append("\r\n");
  }

  // Sends out_, and reads until there are as many bytes as are expected.
  Status ask(std::string_view expected) {
    if (expected.size() > kBuffer) return Status::error("answers are longer than 256 KiB: take shorter values");
    for (std::string_view left = out_; !left.empty();) {
      const ssize_t sent = ::send(socket_.get(), left.data(), left.size(), MSG_NOSIGNAL);
      if (sent < 0) return Status::system_error("send", errno);
      left.remove_prefix(static_cast<size_t>(sent));
    }
    size_t got = 0;
    while (got < expected.size()) {
      const ssize_t more = ::recv(socket_.get(), in_.get() + got, kBuffer - got, 0);
      if (more <= 0) return Status::error(name_ + " has closed the connection, or answers too little");
      got += static_cast<size_t>(more);
      const size_t compared = std::min(got, expected.size());
      if (std::string_view(in_.get(), compared) != expected.substr(0, compared)) {
        return Status::error(name_ + " answers something else: " + std::string(in_.get(), std::min<size_t>(got, 60)));
      }
    }
    return Status::ok();
  }

  const std::string name_;
  const base::UniqueFd socket_;
  const std::unique_ptr<char[]> in_;
  std::string out_, expected_;
};

}  // namespace

base::Expected<std::unique_ptr<Side>> socket_side(const std::string& address) {
  auto parsed = bench::parse_address(address);
  if (!parsed) return parsed.status();
  auto socket = bench::connect_to(parsed.value());
  if (!socket) return socket.status();
  return std::unique_ptr<Side>(std::make_unique<SocketSide>(parsed.value().to_string(), std::move(socket.value())));
}

}  // namespace egret::bench_library
