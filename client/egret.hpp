// libegret for C++20: handles that free themselves, values that release themselves, views and spans. Everything is inline and
// calls egret.h, which says what threads, order, forks and errors are. Nothing is thrown by an op: see Result::code().
#ifndef EGRET_HPP
#define EGRET_HPP

#if __cplusplus < 202002L
#error "egret.hpp needs C++20: compile with -std=c++20"
#endif

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "egret.h"

namespace egret {

// Options, a pool or a client could not be made.
class Error : public std::runtime_error {
 public:
  Error(int code, const std::string& why) : std::runtime_error(why), code_(code) {}
  int code() const noexcept { return code_; }

 private:
  int code_;
};

// What came of an op. It owns the bytes of its value; to be destroyed by the client's thread, before or after the client.
class Result {
 public:
  Result() noexcept { raw_.size = sizeof raw_; }
  Result(Result&& other) noexcept : raw_(std::exchange(other.raw_, Result::empty())) {}
  Result& operator=(Result&& other) noexcept {
    if (this != &other) {
      egret_release(&raw_);
      raw_ = std::exchange(other.raw_, Result::empty());
    }
    return *this;
  }
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;
  ~Result() { egret_release(&raw_); }

  int code() const noexcept { return raw_.code; }  // EGRET_HIT, …, EGRET_E_…
  bool is_hit() const noexcept { return raw_.code == EGRET_HIT; }
  explicit operator bool() const noexcept { return raw_.code >= 0; }  // there is an answer
  const char* text() const noexcept { return egret_text(raw_.code); }
  std::string_view value() const noexcept { return {static_cast<const char*>(raw_.value), raw_.value_length}; }
  uint32_t client_flags() const noexcept { return raw_.client_flags; }
  uint64_t cas() const noexcept { return raw_.cas; }
  uint64_t number() const noexcept { return raw_.number; }
  uint8_t marks() const noexcept { return raw_.marks; }  // EGRET_MARK_
  uint32_t last_access() const noexcept { return raw_.last_access; }
  int64_t ttl() const noexcept { return raw_.ttl; }
  uint64_t tag() const noexcept { return raw_.tag; }
  const egret_result& raw() const noexcept { return raw_; }
  egret_result* out() noexcept { return &raw_; }  // to be written by a call of egret.h; holds nothing before

 private:
  static egret_result empty() noexcept {
    egret_result result{};
    result.size = sizeof result;
    return result;
  }
  egret_result raw_{};
};

// An op for Client::submit() and execute(). Key and value are read during that call.
inline egret_op op(int code, std::string_view key, uint64_t tag = 0) noexcept {
  egret_op made{};
  made.size = sizeof made;
  made.code = static_cast<uint8_t>(code);
  made.key = key.data();
  made.key_length = key.size();
  made.tag = tag;
  return made;
}
inline egret_op get_op(std::string_view key, uint64_t tag = 0) noexcept {
  return op(EGRET_GET, key, tag);
}
inline egret_op set_op(std::string_view key, std::string_view value, int64_t exptime = 0, uint64_t tag = 0) noexcept {
  egret_op made = op(EGRET_SET, key, tag);
  made.value = value.data();
  made.value_length = value.size();
  made.exptime = exptime;
  return made;
}

// Configuration and placement. Any thread.
class Pool {
 public:
  // As egret_pool_open(NULL): $EGRET_CONFIG, or /etc/egret/client.yaml.
  Pool() : raw_(open(nullptr)) {}
  // {{"backends", "shm:/run/egret/backend.sock"}, {"op_timeout", "100ms"}}
  Pool(std::initializer_list<std::pair<const char*, const char*>> options) {
    const Options given = no_options();
    for (const auto& [name, value] : options) {
      const int code = egret_options_set(given.get(), name, value);
      if (code != EGRET_OK) throw Error(code, egret_options_error(given.get()));
    }
    raw_.reset(open(given.get()));
  }

  // As egret_options_load() reads it.
  static Pool from_file(const char* file) {
    const Options given = no_options();
    const int code = egret_options_load(given.get(), file);
    if (code != EGRET_OK) throw Error(code, egret_options_error(given.get()));
    return Pool(open(given.get()));
  }

  int server_of(std::string_view key) const noexcept { return egret_pool_server_of(raw_.get(), key.data(), key.size()); }
  egret_pool* raw() const noexcept { return raw_.get(); }

 private:
  struct Closer {
    void operator()(egret_pool* pool) const noexcept { egret_pool_close(pool); }
  };
  using Options = std::unique_ptr<egret_options, decltype(&egret_options_free)>;
  static Options no_options() {
    Options made(egret_options_new(), egret_options_free);
    if (made == nullptr) throw std::bad_alloc();
    return made;
  }
  explicit Pool(egret_pool* made) noexcept : raw_(made) {}
  static egret_pool* open(egret_options* options) {
    egret_pool* made = nullptr;
    const int code = egret_pool_open(options, &made);
    if (code == EGRET_OK) return made;
    throw Error(code, options != nullptr ? egret_options_error(options) : "no options: egret_log() tells why");
  }
  std::unique_ptr<egret_pool, Closer> raw_;
};

// Sessions and ops under way, of one thread.
class Client {
 public:
  explicit Client(const Pool& pool) {
    egret_client* made = nullptr;
    if (const int code = egret_client_new(pool.raw(), &made); code != EGRET_OK) throw Error(code, egret_text(code));
    raw_.reset(made);
  }

  // The calling thread's own, which ends with the thread, not with this object; nor is it to be used after a fork.
  static Client mine(const Pool& pool) {
    egret_client* const own = egret_client_mine(pool.raw());
    if (own == nullptr) throw std::bad_alloc();
    return Client(own);
  }

  int connect(int64_t timeout_ns) noexcept { return egret_client_connect(raw(), timeout_ns); }

  // It is the calling thread's from now on.
  int adopt() noexcept { return egret_client_adopt(raw()); }

  Result get(std::string_view key) noexcept {
    Result result;
    result.out()->code = egret_get(raw(), key.data(), key.size(), result.out());
    return result;
  }
  // Copies what fits; `length` is the value's.
  int get_into(std::string_view key, std::span<char> to, size_t& length) noexcept {
    return egret_get_into(raw(), key.data(), key.size(), to.data(), to.size(), &length);
  }
  Result get_and_touch(std::string_view key, int64_t exptime) noexcept {
    Result result;
    result.out()->code = egret_gat(raw(), key.data(), key.size(), exptime, result.out());
    return result;
  }
  int set(std::string_view key, std::string_view value, int64_t exptime = 0, uint32_t client_flags = 0) noexcept {
    return egret_set(raw(), key.data(), key.size(), value.data(), value.size(), exptime, client_flags);
  }
  // `mode`: EGRET_MODE_ADD, …; `cas` is compared if it is not 0.
  Result store(int mode, std::string_view key, std::string_view value, int64_t exptime = 0, uint32_t client_flags = 0,
               uint64_t cas = 0) noexcept {
    Result result;
    result.out()->code = egret_store(raw(), mode, key.data(), key.size(), value.data(), value.size(), exptime, client_flags,
                                     cas, result.out());
    return result;
  }
  int remove(std::string_view key, uint64_t cas = 0) noexcept { return egret_delete(raw(), key.data(), key.size(), cas); }
  int increment(std::string_view key, uint64_t by, uint64_t& now) noexcept {
    return egret_incr(raw(), key.data(), key.size(), by, &now);
  }
  int decrement(std::string_view key, uint64_t by, uint64_t& now) noexcept {
    return egret_decr(raw(), key.data(), key.size(), by, &now);
  }
  int touch(std::string_view key, int64_t exptime) noexcept { return egret_touch(raw(), key.data(), key.size(), exptime); }
  int flush_all(int64_t delay = 0) noexcept { return egret_flush_all(raw(), delay); }

  // results[i] answers keys[i].
  std::vector<Result> get(std::span<const std::string_view> keys) {
    std::vector<egret_op> ops;
    ops.reserve(keys.size());
    for (const std::string_view key : keys) {
      ops.push_back(get_op(key));
      ops.back().flags = EGRET_F_WANT_CAS;
    }
    return execute(ops);
  }
  // results[i] answers ops[i].
  std::vector<Result> execute(std::span<const egret_op> ops) {
    static_assert(sizeof(Result) == sizeof(egret_result));
    std::vector<Result> results(ops.size());
    if (ops.empty()) return results;
    constexpr int kUnanswered = INT32_MIN;
    for (Result& result : results) result.out()->code = kUnanswered;
    const int code = egret_execute(raw(), ops.data(), ops.size(), results.front().out());
    for (Result& result : results) {
      if (result.code() == kUnanswered) result.out()->code = code;  // the call was refused as a whole
    }
    return results;
  }

  // --- many under way; see egret.h
  int submit(std::span<const egret_op> ops) noexcept { return egret_submit(raw(), ops.data(), ops.size()); }
  int flush() noexcept { return egret_flush(raw()); }
  // Into elements that hold nothing. Returns how many.
  int reap(std::span<Result> results) noexcept {
    return results.empty() ? 0 : egret_reap(raw(), results.front().out(), results.size());
  }
  int wait(std::span<Result> results, size_t at_least, int64_t timeout_ns) noexcept {
    return results.empty() ? 0 : egret_wait(raw(), results.front().out(), results.size(), at_least, timeout_ns);
  }
  // How many results of submitted ops with this tag are dropped.
  int forget(uint64_t tag) noexcept { return egret_forget(raw(), tag); }
  size_t pending() const noexcept { return egret_pending(raw()); }

  // --- event loops; see egret.h
  int fd() noexcept { return egret_fd(raw()); }
  int arm() noexcept { return egret_arm(raw()); }
  int progress() noexcept { return egret_progress(raw()); }
  // From now on `call(Result)` gets the results of submitted ops, within progress() and wait(). It outlives the client, or
  // no_calls(); what it throws ends the program.
  template <typename Call>
  int on_result(Call& call) noexcept {
    const auto hand_over = [](void* user, egret_result* from) noexcept {
      Result result;
      *result.out() = *from;
      from->view = nullptr;  // released by `result`
      (*static_cast<Call*>(user))(std::move(result));
    };
    return egret_on_result(raw(), hand_over, const_cast<void*>(static_cast<const void*>(&call)));
  }
  // Back to reap().
  int no_calls() noexcept { return egret_on_result(raw(), nullptr, nullptr); }

  // Names and values.
  std::vector<std::pair<std::string_view, uint64_t>> counters() const {
    const int count = egret_counters(raw(), nullptr, nullptr, 0);
    if (count < 0) throw Error(count, egret_text(count));
    std::vector<const char*> names(static_cast<size_t>(count));
    std::vector<uint64_t> values(names.size());
    egret_counters(raw(), names.data(), values.data(), names.size());
    std::vector<std::pair<std::string_view, uint64_t>> all;
    for (size_t i = 0; i < names.size(); ++i) all.emplace_back(names[i], values[i]);
    return all;
  }
  const char* why() const noexcept { return egret_why(raw()); }
  egret_client* raw() const noexcept { return raw_.get(); }

 private:
  struct Freer {
    Freer() noexcept : is_threads(false) {}
    explicit Freer(bool of_thread) noexcept : is_threads(of_thread) {}
    bool is_threads;  // whose end frees it
    void operator()(egret_client* client) const noexcept {
      if (!is_threads) egret_client_free(client);
    }
  };
  explicit Client(egret_client* own) noexcept : raw_(own, Freer{true}) {}
  std::unique_ptr<egret_client, Freer> raw_;
};

// Lines of this process's log go to call(int level, std::string_view line), which outlives that; see egret_log().
template <typename Call>
void log_to(Call& call) noexcept {
  egret_log([](void* user, int level,
               const char* line) noexcept { (*static_cast<Call*>(user))(level, std::string_view(line)); },
            const_cast<void*>(static_cast<const void*>(&call)));
}
inline void log_to(std::nullptr_t) noexcept {
  egret_log(nullptr, nullptr);
}

}  // namespace egret

#endif
