// The secret that proxies and backends share, and the file it comes from. Who may read that file may pose as either of
// them, so a file that others can read or could have replaced is refused.
//
// Nothing here logs or prints a secret, and nothing may: it leaves this process only inside an HMAC (wire/proof.h).
// Cold path; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace egret::base {

inline constexpr size_t kMinSecretBytes = 16;
inline constexpr size_t kMaxSecretBytes = 4096;

// A value; by default none is set.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string bytes) : bytes_(std::move(bytes)) {}
  bool is_set() const { return !bytes_.empty(); }
  std::string_view bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads the secret that `path` holds: any bytes, less one newline at the end. Refused with a sentence that says what to
// do: a file that is no regular one, that group or others may touch, that belongs to somebody other than root or this
// process's user, or whose secret is shorter than kMinSecretBytes or longer than kMaxSecretBytes.
Expected<Secret> read_secret(const std::string& path);

}  // namespace egret::base
