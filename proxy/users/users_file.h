// The users file: YAML, users with a password's hash, rights and the keys that they may use.
//
//   anna:
//     password: "$y$j9T$..."         # mkpasswd -m yescrypt
//     rights: [read, write]          # of read, write, admin
//     prefixes: ["shop:", "cart:"]   # of keys; without it: every key
//     uids: [33]                     # local users who are this one when they come by slots (proxy/slots)
//
// Cold path; any thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "proxy/users/rights.h"

namespace egret::proxy {

struct UserEntry {
  User user;
  std::string hash;  // password_hash.h
  int line = 0;      // from 1
};

// Its failures name file and line.
base::Expected<std::vector<UserEntry>> read_users_file(const std::string& path);

}  // namespace egret::proxy
