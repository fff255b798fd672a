// The embedded status page: one document that loads no other file, and whose policy allows only what it needs.
#include <regex>
#include <string>

#include <doctest/doctest.h>

#include "page/page.h"

namespace {

namespace page = egret::page;

std::string document() {
  return std::string(page::status_page());
}

bool holds(const std::string& text, const char* pattern) {
  return std::regex_search(text, std::regex(pattern));
}

// The document without its scripts and styles, for what is asked of its elements.
std::string markup() {
  std::string text = document();
  for (const std::string tag : {"script", "style"}) {
    for (size_t begin = 0; (begin = text.find("<" + tag + ">", begin)) != std::string::npos;) {
      const size_t end = text.find("</" + tag + ">", begin);
      REQUIRE(end != std::string::npos);
      text.erase(begin, end - begin);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("the page is one whole document, its files all in it") {
  CHECK(document().starts_with("<!doctype html>"));
  CHECK(document().ends_with("</html>\n"));
  for (const char* mark : {"@page.css@", "@model.js@", "@page.js@"}) CHECK(document().find(mark) == std::string::npos);
  CHECK(document().find("const Egret = ") != std::string::npos);
}

TEST_CASE("nothing is loaded from elsewhere") {
  CHECK_FALSE(holds(markup(), "\\ssrc="));
  CHECK_FALSE(holds(markup(), "href=\"(https?:|//)"));
  CHECK_FALSE(holds(document(), "@import|url\\("));
  CHECK(document().find("http://") == document().find("http://www.w3.org/2000/svg"));  // SVG's name, not an address
}

TEST_CASE("no script and no style stands in an attribute, where the policy would stop it") {
  CHECK_FALSE(holds(markup(), "\\son[a-z]+="));
  CHECK_FALSE(holds(markup(), "\\sstyle="));
  CHECK_FALSE(holds(document(), "innerHTML|insertAdjacentHTML|document\\.write|eval\\("));
}

TEST_CASE("the policy allows the page's own script and style and connections to where it came from, no more") {
  const std::string policy(page::content_security_policy());
  CHECK(policy.starts_with("default-src 'none'; "));
  CHECK(holds(policy,
              "script-src 'sha256-[A-Za-z0-9+/]{43}='; style-src 'sha256-[A-Za-z0-9+/]{43}='; connect-src 'self'"));
  CHECK(policy.find("unsafe") == std::string::npos);
  CHECK(policy.find("frame-ancestors 'none'") != std::string::npos);
  CHECK(policy.find_first_of("\r\n") == std::string::npos);
}
