#include <algorithm>
#include <array>
#include <utility>

#include "bench_library/side.h"
#include "client/egret.h"

namespace egret::bench_library {

namespace {

using base::Status;

constexpr int64_t kConnectNs = 10'000'000'000;
constexpr size_t kReaped = 32;

struct PoolCloser {
  void operator()(egret_pool* pool) const { egret_pool_close(pool); }
};
struct ClientFreer {
  void operator()(egret_client* client) const { egret_client_free(client); }
};
using Client = std::unique_ptr<egret_client, ClientFreer>;

egret_result empty_result() {
  egret_result result{};
  result.size = sizeof result;
  return result;
}

class LibrarySide final : public Side {
 public:
  LibrarySide(std::string name, LibraryOptions options, Client client)
      : name_(std::move(name)), options_(std::move(options)), client_(std::move(client)) {}

  const std::string& name() const override { return name_; }
  base::Expected<std::unique_ptr<Side>> another() const override { return library_side(name_, options_); }

  bool may_fork() const override {
    return std::ranges::none_of(options_,
                                [](const auto& each) { return each.second.find("rdma") != std::string::npos; });
  }

  Status set(const std::string& key, const std::string& value) override {
    const int code = egret_set(client_.get(), key.data(), key.size(), value.data(), value.size(), 0, 0);
    return code == EGRET_STORED ? Status::ok() : failed("set", code);
  }

  Status get(const std::string& key, const std::string& value) override {
    egret_result result = empty_result();
    const int code = egret_get(client_.get(), key.data(), key.size(), &result);
    return checked(result, code, value);
  }

  Status multiget(const std::vector<std::string>& keys, const std::vector<std::string>& values) override {
    pointers_.clear();
    lengths_.clear();
    for (const std::string& key : keys) {
      pointers_.push_back(key.data());
      lengths_.push_back(key.size());
    }
    results_.assign(keys.size(), empty_result());
    egret_mget(client_.get(), pointers_.data(), lengths_.data(), keys.size(), results_.data());
    Status status = Status::ok();
    for (size_t i = 0; i < keys.size(); ++i) {
      if (Status good = checked(results_[i], results_[i].code, values[i]); !good) status = good;
    }
    return status;
  }

  Status pipelined(const std::vector<std::string>& keys, const std::vector<std::string>& values) override {
    ops_.clear();
    for (size_t i = 0; i < keys.size(); ++i) {
      egret_op op{};
      op.size = sizeof op;
      op.code = EGRET_GET;
      op.key = keys[i].data();
      op.key_length = keys[i].size();
      op.tag = i;
      ops_.push_back(op);
    }
    Status status = Status::ok();
    std::array<egret_result, kReaped> reaped;
    for (size_t sent = 0, done = 0; done < ops_.size();) {
      const size_t room = std::min(ops_.size() - sent, kUnderWay - (sent - done));
      const int taken = room > 0 ? egret_submit(client_.get(), &ops_[sent], room) : 0;
      if (taken < 0 && taken != EGRET_E_AGAIN) return failed("submit", taken);
      sent += taken > 0 ? static_cast<size_t>(taken) : 0;
      reaped.fill(empty_result());
      const int count = egret_wait(client_.get(), reaped.data(), reaped.size(), kRefill, -1);
      if (count < 0) return failed("wait", count);
      for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
        if (Status good = checked(reaped[i], reaped[i].code, values[reaped[i].tag]); !good) status = good;
      }
      done += static_cast<size_t>(count);
    }
    return status;
  }

 private:
  Status failed(const char* what, int code) const {
    return Status::error(std::string(what) + ": " + egret_text(code) + " " + egret_why(client_.get()));
  }
  Status checked(egret_result& result, int code, const std::string& value) const {
    const bool is_right =
        code == EGRET_HIT && std::string_view(static_cast<const char*>(result.value), result.value_length) == value;
    egret_release(&result);
    if (is_right) return Status::ok();
    return code == EGRET_HIT ? Status::error("a get brought another value than was set") : failed("get", code);
  }

  const std::string name_;
  const LibraryOptions options_;
  const Client client_;
  std::vector<const char*> pointers_;
  std::vector<size_t> lengths_;
  std::vector<egret_result> results_;
  std::vector<egret_op> ops_;
};

}  // namespace

base::Expected<std::unique_ptr<Side>> library_side(const std::string& name, const LibraryOptions& given) {
  const std::unique_ptr<egret_options, decltype(&egret_options_free)> options(egret_options_new(), egret_options_free);
  egret_pool* opened = nullptr;
  for (const auto& [option, value] : given) {
    if (egret_options_set(options.get(), option.c_str(), value.c_str()) != EGRET_OK) {
      return Status::error(egret_options_error(options.get()));
    }
  }
  if (egret_pool_open(options.get(), &opened) != EGRET_OK) return Status::error(egret_options_error(options.get()));
  const std::unique_ptr<egret_pool, PoolCloser> pool(opened);
  egret_client* made = nullptr;
  if (const int code = egret_client_new(pool.get(), &made); code != EGRET_OK) return Status::error(egret_text(code));
  Client client(made);
  if (egret_client_connect(made, kConnectNs) != EGRET_OK) return Status::error(egret_why(made));
  return std::unique_ptr<Side>(std::make_unique<LibrarySide>(name, given, std::move(client)));
}

}  // namespace egret::bench_library
