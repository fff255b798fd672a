// Sends entries with fields to systemd's journal, by its native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL): a
// datagram of NAME=VALUE lines. The protocol is written out, since libsystemd would bring half a dozen libraries into
// each process and image.
//
//   log.cc ─ entries ─▶ JournalSocket ─ a datagram ─▶ /run/systemd/journal/socket
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace egret::base {

inline constexpr std::string_view kJournalSocket = "/run/systemd/journal/socket";

// Any thread. Cold path.
class JournalSocket {
 public:
  // Where there is no such socket it takes nothing.
  explicit JournalSocket(std::string_view path);

  // One entry; each text is NAME=VALUE on one line (no line breaks: the caller has escaped them). False: it was not
  // taken, because there is no journal, it stands, or the entry is too large for a datagram. Never waits.
  bool send(std::span<const std::string> texts) const;

 private:
  UniqueFd socket_;  // closed: there is none
};

}  // namespace egret::base
