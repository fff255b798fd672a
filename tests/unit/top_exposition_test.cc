// What egret-top takes for a sample of Prometheus' text, from a peer who may write anything.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "top/exposition.h"

using egret::top::Match;
using egret::top::NaturalOrder;
using egret::top::parse_exposition;
using egret::top::parse_sample;

TEST_CASE("a sample is a name, labels and a number; a timestamp after it is passed over") {
  const auto plain = parse_sample("a_total 3");
  REQUIRE(plain);
  CHECK(plain->name == "a_total");
  CHECK(plain->value == 3);
  const auto full = parse_sample(R"(a{x="say \"hi\"\n\\ }",y="2",} +1.5e3 1700000000000)");
  REQUIRE(full);
  REQUIRE(full->label("x") != nullptr);
  CHECK(*full->label("x") == "say \"hi\"\n\\ }");
  CHECK(*full->label("y") == "2");
  CHECK(full->label("z") == nullptr);
  CHECK(full->value == 1500);
  CHECK(parse_sample("a 3\r"));  // a line's other end
}

TEST_CASE("what is no sample is none") {
  for (const char* line :
       {"",      " ",        "#",       "# HELP a b", "a",           "a ",          "a{",    "a{x",
        "a{x=",  "a{x=1} 1", "a{x=\"1", "a{x=\"1\\",  "a{x=\"1\" 1", "a{=\"1\"} 1", "{} 1",  "7 1",
        "a one", "a 0x10",   "a 1e999", "a NaN",      "a +Inf",      "a inf",       "a 1,5", "\xc3\xa9 1"}) {
    CAPTURE(line);
    CHECK_FALSE(parse_sample(line));
  }
}

TEST_CASE("a line that is none costs only itself") {
  const auto scrape = parse_exposition("# TYPE a counter\na{x=\"1\"} 1\nrubbish\n\n\na{x=\"2\"} 2\nb 5");
  CHECK(scrape->samples().sum("a") == 3);
  CHECK(scrape->samples().sum("a", {"x", "2"}) == 2);
  CHECK(scrape->samples().sum("b") == 5);  // the last line needs no end
  CHECK_FALSE(scrape->samples().sum("c").has_value());
  CHECK_FALSE(scrape->samples().sum("a", {"x", "3"}).has_value());
}

TEST_CASE("of two lines for one series the last holds") {
  CHECK(parse_exposition("a{x=\"1\"} 1\na{x=\"1\"} 7\n")->samples().sum("a") == 7);
}

TEST_CASE("a sample has at most so many labels, a scrape so many samples") {
  std::string line = "a{";
  for (size_t label = 0; label <= egret::top::kMaxLabels; ++label) line += "l" + std::to_string(label) + "=\"\",";
  CHECK_FALSE(parse_sample(line + "} 1"));
  std::string text;
  for (size_t sample = 0; sample < egret::top::kMaxSamples + 5; ++sample)
    text += "a{x=\"" + std::to_string(sample) + "\"} 1\n";
  CHECK(parse_exposition(text)->samples().count("a") == static_cast<double>(egret::top::kMaxSamples));
}

TEST_CASE("samples are grouped by a label, in natural order") {
  const auto scrape = parse_exposition("a{x=\"c-10\"} 1\na{x=\"c-9\"} 2\na{x=\"c-09\"} 3\nb{x=\"c-9\"} 4\na 5\n");
  std::vector<std::string> names;
  const auto sets = scrape->samples().by_label("x");
  for (const auto& [name, set] : sets) names.emplace_back(name);
  CHECK(names == std::vector<std::string>{"c-09", "c-9", "c-10"});
  CHECK(sets.at("c-9").sum("a") == 2);
  CHECK(sets.at("c-9").sum("b") == 4);
}

TEST_CASE("the natural order is an order: of two different names one comes first") {
  const std::vector<std::string> names = {"",    "0",  "00", "a", "a0", "a00", "a1",  "a01", "a1b",
                                          "a10", "a2", "b",  "1", "01", "10",  "a0b", "a00b"};
  const NaturalOrder before;
  for (const auto& left : names) {
    for (const auto& right : names) {
      CAPTURE(left);
      CAPTURE(right);
      CHECK(before(left, right) + before(right, left) == (left == right ? 0 : 1));
      for (const auto& third : names) {
        if (before(left, right) && before(right, third)) CHECK(before(left, third));
      }
    }
  }
}
