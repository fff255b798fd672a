// Which rights a peer has: the option `rights`, and what holds for peers that it does not name.
//
//   who the peer is (user and groups over shm, the secret it has proved) ─ first entry that names it ─▶ op::Rights
//
// A value; any thread, one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "op/rights.h"

namespace egret::access {

// What is known of a peer when its session is granted.
struct Peer {
  bool has_user = false;  // it is on this host: uid and gids are the kernel's word
  uint32_t uid = 0;
  std::vector<uint32_t> gids{};  // its own and the supplementary ones
  std::string secret{};          // the name of the one that it has proved to hold; empty: none
};

class RightsTable {
 public:
  // Entries like "uid=33:read+write", "gid=100:all", "secret=NAME:read", "other:none".
  static base::Expected<RightsTable> parse(const std::vector<std::string>& entries);
  // The first entry that names the peer decides. Of those that none names, whoever has proved a secret, root, the
  // user `own_uid` and peers without a user (nothing but a secret can tell those apart) may do everything; other users
  // may read and write.
  op::Rights of(const Peer& peer, uint32_t own_uid) const;
  // The names of secrets in entries.
  std::vector<std::string> secrets() const;

 private:
  enum class Who : uint8_t { kUid, kGid, kSecret, kOther };
  struct Entry {
    Who who = Who::kOther;
    uint32_t id = 0;
    std::string secret;
    op::Rights rights = 0;
  };

  static bool parse_entry(const std::string& text, Entry& entry);
  static bool names(const Entry& entry, const Peer& peer);

  std::vector<Entry> entries_;
};

}  // namespace egret::access
