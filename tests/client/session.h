// What tests of egret.h begin with: a client of some backends, and shorter ways to write calls and results.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "egret.h"

inline egret_result empty_result() {
  egret_result result{};
  result.size = sizeof result;
  return result;
}

inline egret_op op_of(int code, std::string_view key, uint64_t tag = 0) {
  egret_op op{};
  op.size = sizeof op;
  op.code = static_cast<uint8_t>(code);
  op.key = key.data();
  op.key_length = key.size();
  op.tag = tag;
  return op;
}

inline egret_op set_of(std::string_view key, std::string_view value, uint64_t tag = 0) {
  egret_op op = op_of(EGRET_SET, key, tag);
  op.value = value.data();
  op.value_length = value.size();
  return op;
}

inline std::string patterned(size_t length) {
  std::string text(length, '\0');
  for (size_t i = 0; i < length; ++i) text[i] = static_cast<char>('a' + i * i % 23);
  return text;
}

// Whether the code says that no backend has answered.
inline bool is_no_answer(int code) {
  return code == EGRET_E_UNAVAILABLE || code == EGRET_E_UNKNOWN;
}

inline std::string value_of(const egret_result& result) {
  return {static_cast<const char*>(result.value), result.value_length};
}

struct PoolCloser {
  void operator()(egret_pool* pool) const { egret_pool_close(pool); }
};
struct ClientCloser {
  void operator()(egret_client* client) const { egret_client_free(client); }
};
using Pool = std::unique_ptr<egret_pool, PoolCloser>;
using Client = std::unique_ptr<egret_client, ClientCloser>;
using Options = std::vector<std::pair<const char*, std::string>>;

inline Pool open_pool(const Options& given) {
  egret_options* const options = egret_options_new();
  for (const auto& [name, value] : given) {
    const int code = egret_options_set(options, name, value.c_str());
    INFO(egret_options_error(options));
    REQUIRE(code == EGRET_OK);
  }
  egret_pool* pool = nullptr;
  const int code = egret_pool_open(options, &pool);
  INFO(egret_options_error(options));
  REQUIRE(code == EGRET_OK);
  egret_options_free(options);
  return Pool(pool);
}

inline Client new_client(const Pool& pool) {
  egret_client* client = nullptr;
  REQUIRE(egret_client_new(pool.get(), &client) == EGRET_OK);
  return Client(client);
}

// Until all backends serve; pauses between attempts are the library's own.
inline void connect(egret_client* client) {
  int code = EGRET_E_UNAVAILABLE;
  for (int attempt = 0; attempt < 6000 && code != EGRET_OK; ++attempt) {
    code = egret_client_connect(client, 1'000'000'000);
    if (code != EGRET_OK) ::usleep(10'000);
  }
  INFO(egret_why(client));
  REQUIRE(code == EGRET_OK);
}

// One of what the client counts; -1: there is none of that name.
inline int64_t counter(egret_client* client, const std::string& name) {
  std::vector<const char*> names(64);
  std::vector<uint64_t> values(64);
  const int count = egret_counters(client, names.data(), values.data(), names.size());
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    if (name == names[i]) return static_cast<int64_t>(values[i]);
  }
  return -1;
}

// --- calls with the words of C++
inline int set(egret_client* client, std::string_view key, std::string_view value, int64_t exptime = 0) {
  return egret_set(client, key.data(), key.size(), value.data(), value.size(), exptime, 0);
}

// The value; "(CODE)" if there is none.
inline std::string get(egret_client* client, std::string_view key) {
  egret_result result = empty_result();
  const int code = egret_get(client, key.data(), key.size(), &result);
  CHECK(code == result.code);
  std::string value = code == EGRET_HIT ? value_of(result) : "(" + std::string(egret_text(code)) + ")";
  egret_release(&result);
  return value;
}

inline int del(egret_client* client, std::string_view key) {
  return egret_delete(client, key.data(), key.size(), 0);
}

inline int incr(egret_client* client, std::string_view key, uint64_t& now, uint64_t by = 1) {
  return egret_incr(client, key.data(), key.size(), by, &now);
}
