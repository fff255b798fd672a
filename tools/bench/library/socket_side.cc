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
    expected_ = "STORED\r\n";
    return ask();
  }

  Status get(const std::string& key, const std::string& value) override {
    out_.assign("get ").append(key).append("\r\n");
    expected_.clear();
    expect(key, value);
    expected_ += kEnd;
    return ask();
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
    return ask();
  }

  Status pipelined(const std::vector<std::string>& keys, const std::vector<std::string>& values) override {
    out_.clear();
    expected_.clear();
    std::vector<size_t> asked, answered;  // where each one's command and answer end
    for (size_t i = 0; i < keys.size(); ++i) {
      asked.push_back(out_.append("get ").append(keys[i]).append("\r\n").size());
      expect(keys[i], values[i]);
      answered.push_back(expected_.append(kEnd).size());
    }
    size_t sent = 0, done = 0, got = 0;
    while (done < keys.size()) {
      const size_t until = std::min(keys.size(), done + kUnderWay);
      const size_t from = sent == 0 ? 0 : asked[sent - 1];
      if (until > sent) {
        if (Status all = send(std::string_view(out_).substr(from, asked[until - 1] - from)); !all) return all;
      }
      sent = until;
      for (const size_t enough = std::min(sent, done + kRefill); done < enough;) {
        if (Status more = receive(got); !more) return more;
        while (done < sent && answered[done] <= got) ++done;
      }
    }
    return Status::ok();
  }

 private:
  void expect(const std::string& key, const std::string& value) {
    expected_.append("VALUE ").append(key).append(" 0 ").append(std::to_string(value.size())).append("\r\n");
    expected_.append(value).append("\r\n");
  }

  // Sends out_, and reads until expected_ is there.
  Status ask() {
    if (Status sent = send(out_); !sent) return sent;
    for (size_t got = 0; got < expected_.size();) {
      if (Status more = receive(got); !more) return more;
    }
    return Status::ok();
  }

  Status send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0) return Status::system_error("send", errno);
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return Status::ok();
  }

  // The next bytes of expected_, of which `got` are here already.
  Status receive(size_t& got) {
    const ssize_t more = ::recv(socket_.get(), in_.get(), kBuffer, 0);
    if (more <= 0) return Status::error(name_ + " has closed the connection, or answers too little");
    const std::string_view bytes(in_.get(), static_cast<size_t>(more));
    if (!std::string_view(expected_).substr(got).starts_with(bytes)) {
      return Status::error(name_ + " answers something else: " + std::string(bytes.substr(0, 60)));
    }
    got += bytes.size();
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
