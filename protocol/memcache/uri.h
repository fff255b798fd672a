// Keys as memcached writes them where they must not break a line: as in a URI.
#pragma once

#include <string>
#include <string_view>

namespace egret::memcache {

// Appends the key, all but letters, digits and "-._~" as %XX.
void append_uri_encoded(std::string& to, std::string_view key);

}  // namespace egret::memcache
