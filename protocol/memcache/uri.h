// Keys in URI encoding, as memcached writes them in lines.
#pragma once

#include <string>
#include <string_view>

namespace egret::memcache {

// Appends the key; letters, digits and "-._~" as they are, all other bytes as %XX.
void append_uri_encoded(std::string& to, std::string_view key);

// Whether the key has bytes that a text command cannot carry as they are: spaces, line ends, other control characters.
bool is_binary_key(std::string_view key);

// For answers in which memcached writes text as it is: appends it so too, but URI-encoded if is_binary_key(), so that
// nobody's key or name is read as a line of the answer.
void append_shown(std::string& to, std::string_view text);

}  // namespace egret::memcache
