// Keys in URI encoding, as memcached writes them in lines.
#pragma once

#include <string>
#include <string_view>

namespace egret::memcache {

// Appends the key; letters, digits and "-._~" as they are, all other bytes as %XX.
void append_uri_encoded(std::string& to, std::string_view key);

}  // namespace egret::memcache
