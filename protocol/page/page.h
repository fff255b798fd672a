// The status page as the daemons serve it: one HTML document, complete in itself, and the headers that go with it.
//
//   page.html + page.css + model.js + page.js ─ embed.py, when Egret is built ─▶ status_page()
//
// Constants of the program; any thread.
#pragma once

#include <string_view>

namespace egret::page {

// Served at "/". Asks for "metrics", relative to where it is, once a second, and for nothing else.
std::string_view status_page();

inline constexpr std::string_view kContentType = "text/html; charset=utf-8";

// The value of the header Content-Security-Policy: the page's own script and style by their hashes, connections to
// where it came from, and nothing else.
std::string_view content_security_policy();

}  // namespace egret::page
