// The status page as the daemons serve it: one self-contained HTML document, and its HTTP headers.
//
//   page.html + page.css + model.js + page.js ─ embed.py, when Egret is built ─▶ status_page()
//
// Constants of the program; any thread.
#pragma once

#include <string_view>

namespace egret::page {

// Served at "/". It requests "metrics", relative to its own address, once a second, and nothing else.
std::string_view status_page();

inline constexpr std::string_view kContentType = "text/html; charset=utf-8";

// The value of the header Content-Security-Policy: allows the page's own script and style, by their hashes, and
// connections to its own origin.
std::string_view content_security_policy();

}  // namespace egret::page
