// Asks the daemon that serves at an admin address for a page: for a command that runs beside the daemon (--doctor).
//
//   Address ─▶ connect ─ GET ─▶ the answer's body
//
// Blocks for kMostMs in all, at most. Any thread; not for one that serves.
#pragma once

#include <string>
#include <string_view>

#include "admin/address.h"

namespace egret::admin {

inline constexpr int kMostMs = 2'000;
inline constexpr size_t kMostAnswer = 1 << 20;  // bytes; a longer answer is cut

// The body, whatever the answer's status is. A failure: nobody listens there, or what answers does not speak HTTP.
base::Expected<std::string> ask(const Address& address, std::string_view path);

}  // namespace egret::admin
