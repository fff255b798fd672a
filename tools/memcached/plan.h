// What is done about a Request: the command lines of the two daemons, and what the log says of it.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "memcached/request.h"

namespace egret::memcached {

struct Plan {
  DaemonOptions backend;           // without `listen`
  DaemonOptions proxy;             // without `backends`
  std::vector<std::string> notes;  // what was accepted otherwise than it was given
  bool has_tcp = false;
  std::string where;  // "TCP port 11211", as memcached names where it cannot listen
};

// Checks flags against each other in memcached's order, with its words and statuses where it has some.
// `sasl_file`: what MEMCACHED_SASL_PWDB names, or empty.
std::variant<Plan, Refusal> make_plan(const Request& request, const std::string& sasl_file);

// --set NAME=VALUE ... for each.
std::vector<std::string> set_arguments(const DaemonOptions& options);

}  // namespace egret::memcached
