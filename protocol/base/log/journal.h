// Sends entries with fields to systemd's journal by its native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL): a
// datagram of NAME=VALUE lines. Own code, because libsystemd would bring half a dozen libraries into each process and
// image.
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
  // If there is no such socket, send() returns false.
  explicit JournalSocket(std::string_view path);

  // Sends one entry; each text is NAME=VALUE without line breaks (the caller escapes them). False: not sent, because
  // there is no journal, its queue is full, or the entry is too large for a datagram. Never waits.
  bool send(std::span<const std::string> texts) const;

 private:
  UniqueFd socket_;  // closed: there is none
};

}  // namespace egret::base
