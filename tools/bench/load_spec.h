// The parameters of a load, from the command line or the suite.
#pragma once

#include <cstdint>

namespace egret::bench {

enum class Protocol : uint8_t { kText, kBinary };

// What a closed loop does when answers arrive; see generator.h.
enum class Sending : uint8_t { kRounds, kAtOnce };

struct LoadSpec {
  Protocol protocol = Protocol::kText;
  uint32_t connections = 50;      // connections that send
  uint32_t idle_connections = 0;  // further open connections, each of which has sent one request long ago
  Sending sending = Sending::kRounds;
  uint32_t depth = 1;     // requests of a connection that are unanswered at the same time
  uint32_t multiget = 1;  // keys per get
  uint32_t value_size = 100;
  uint32_t keys = 100'000;
  uint32_t key_size = 16;
  double zipf = 0;          // exponent; 0: uniform
  double read_share = 0.9;  // of the requests
  double rate = 0;          // requests/s over all connections, sent on schedule whatever the answers do; 0: closed loop
  double duration_s = 2;
  double warmup_s = 0.3;
  bool preload = true;  // set every key once before
  uint32_t threads = 1;
  uint64_t seed = 1;
};

}  // namespace egret::bench
