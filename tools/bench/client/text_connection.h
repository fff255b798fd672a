// A connection in memcached's text protocol: "get" with one or more keys, and "set".
#pragma once

#include <string>
#include <string_view>

#include "bench/client/connection.h"

namespace egret::bench {

class TextConnection final : public Connection {
 public:
  TextConnection(base::UniqueFd fd, const Keyspace& keyspace, const BatchLimits& limits, Tally& tally);

  void add_get(std::span<const uint32_t> keys, uint64_t intended_ns) override;
  void add_set(uint32_t key, uint64_t version, uint64_t intended_ns) override;

 private:
  Step judge(std::string_view input, uint64_t now_ns) override;
  Step judge_set(std::string_view input, uint64_t now_ns);
  Step judge_get(std::string_view input, uint64_t now_ns);
  Step judge_value_of_next_key(std::string_view input, size_t header_size);
  Step judge_unexpected_value(std::string_view input);
  Step judge_error_line(std::string_view input, uint64_t now_ns);

  const std::string set_suffix_;    // " 0 0 <length>\r\n"
  const std::string value_suffix_;  // " 0 <length>\r\n"
};

}  // namespace egret::bench
