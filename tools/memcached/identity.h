// Who this process is and what it may: the user, core files.
#pragma once

#include <optional>
#include <string>

#include "memcached/request.h"

namespace egret::memcached {

// As memcached's -u: root must name a user and becomes that user, with no other groups; for everybody else nothing
// changes.
std::optional<Refusal> leave_root(const std::string& user);

// As memcached's -r: the limit of core files as high as it may be; refused if that is 0.
std::optional<Refusal> allow_core_dumps();

}  // namespace egret::memcached
