// A list of members as text: one a line as in the option `backends`, blank lines, and comments from a # that begins a
// line or stands behind a blank.
//
// Thread: any; functions without state.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "pool/member.h"

namespace egret::discovery {

// The members in the text's order, as pool::check_members() wants them. An error names the file and the line:
// "/etc/egret/backends:3: expected weight=N …".
base::Expected<std::vector<pool::Member>> parse_members(std::string_view text, const std::string& file_name);

// A text from which parse_members() makes the same members. `title` becomes its first line, a comment.
std::string members_text(std::string_view title, std::span<const pool::Member> members);

}  // namespace egret::discovery
