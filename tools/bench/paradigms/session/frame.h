// What hosts say to each other: frames of any size, cut into parts that fit a RECV. Everything that comes is checked here, once.
//
//   frame   magic 4 | version 2 | type 2 | bytes of the body 8 | body        parts are cut anywhere
//
// And the fields of a body: FieldWriter, and FieldReader, which never reads beyond the end and says so once.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/status.h"

namespace egret::bench_paradigms {

enum class FrameType : uint16_t {
  kHello = 1,  // connecting: token, build, host, capabilities
  kWelcome,    // listening: this host's number, all hosts, capabilities of all devices
  kRefused,    // listening: why not; the end
  kOrder,      // listening: the run begins
  kStep,       // listening: what all own nodes do next, and what they have to know
  kDone,       // connecting: what came of it, by node
  kArrived,    // connecting: all own nodes have come to the end of so many phases
  kOpen,       // listening: all nodes of all hosts have
  kAlive,      // either: nothing else for a while
  kReport,     // listening: the end
  kGoodbye,    // connecting: it has been read
};
inline constexpr uint16_t kLastFrameType = static_cast<uint16_t>(FrameType::kGoodbye);

struct Frame {
  FrameType type = FrameType::kAlive;
  std::string body;
};

inline constexpr uint32_t kFrameMagic = 0x4c524745;  // "EGRL"
inline constexpr uint16_t kFrameVersion = 1;
inline constexpr size_t kFrameHead = 16;
inline constexpr uint64_t kMostFrameBody = uint64_t{256} << 20;
inline constexpr uint64_t kMostStrangersBody = 4096;  // of who has not given the token yet

// The head and the body, ready to be cut.
std::string to_bytes(FrameType type, std::string_view body);

// Puts parts together again. Memory grows with what has come, not with what is announced.
class FrameReader {
 public:
  // Fails on what is no frame of this version; nothing may be added after that.
  base::Status add(std::string_view part);
  // From now on large frames are taken.
  void trust() { most_ = kMostFrameBody; }
  bool has_next() const { return !frames_.empty(); }
  Frame take();

 private:
  std::string bytes_;  // of the frame that is coming
  uint64_t most_ = kMostStrangersBody;
  std::deque<Frame> frames_;
};

class FieldWriter {
 public:
  template <typename T>
  FieldWriter& put(T value) {
    static_assert(std::is_arithmetic_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  FieldWriter& put_text(std::string_view text) {
    put<uint64_t>(text.size());
    bytes_.append(text);
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : rest_(bytes) {}

  // 0 where the bytes do not suffice; then is_good is false from now on.
  template <typename T>
  T get() {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    T value{};
    const std::string_view bytes = cut(sizeof value);
    if (is_good_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  bool get_bool();  // a byte that is 0 or 1
  std::string_view get_text() { return cut(get<uint64_t>()); }
  bool is_good() const { return is_good_; }
  // Everything was good, and nothing is left.
  bool is_done() const { return is_good_ && rest_.empty(); }

 private:
  std::string_view cut(uint64_t bytes);

  std::string_view rest_;
  bool is_good_ = true;
};

}  // namespace egret::bench_paradigms
