// Changes the process's user, and its limit of core files.
#pragma once

#include <optional>
#include <string>

#include "memcached/request.h"

namespace egret::memcached {

// As memcached's -u: root must name a user, and the process becomes that user, without supplementary groups. For other
// users nothing changes.
std::optional<Refusal> leave_root(const std::string& user);

// As memcached's -r: raises the limit of core files as far as possible; refused if that is 0.
std::optional<Refusal> allow_core_dumps();

}  // namespace egret::memcached
