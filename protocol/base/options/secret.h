// The secret that proxies and backends share, and its file. Whoever can read the file can impersonate either side, so a
// file that others can read or replace is refused.
//
// Never log or print a secret: it leaves this process only inside an HMAC (wire/proof.h).
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

// Reads the secret in the file `path`: any bytes; one newline at the end is removed. Refuses, with a sentence that says
// what to do: a file that is not regular, that group or others have any access to, or that belongs to another user than
// root and this process's; a secret shorter than kMinSecretBytes or longer than kMaxSecretBytes.
Expected<Secret> read_secret(const std::string& path);

}  // namespace egret::base
