// Turns a Request into the options of the two daemons, and into notes for the log.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "memcached/request.h"

namespace egret::memcached {

struct Plan {
  DaemonOptions backend;           // without `listen`
  DaemonOptions proxy;             // without `backends`
  std::vector<std::string> notes;  // about flags that were ignored or changed
  bool has_tcp = false;
  std::string where;  // "TCP port 11211", for memcached's message that it cannot listen there
};

// Checks flags against each other in memcached's order, with memcached's messages and statuses where it has them.
// `sasl_file`: the value of MEMCACHED_SASL_PWDB, or empty.
std::variant<Plan, Refusal> make_plan(const Request& request, const std::string& sasl_file);

// All options as NAME=VALUE; and as arguments, --set NAME=VALUE.
std::vector<std::string> assignments(const DaemonOptions& options);
std::vector<std::string> set_arguments(const DaemonOptions& options);

}  // namespace egret::memcached
