// The classic text protocol as a specification: the events of each line, however the bytes arrive.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "memcache/text/text_parser.h"
#include "memcache_text_events.h"

namespace {

using namespace egret::memcache;
using namespace std::string_literals;
using Events = std::vector<std::string>;

Events parse(std::string_view bytes, Limits limits = {}) {
  return EventLog(limits).feed(bytes).events();
}

// What one line gives, of which there may be nothing to see.
std::string parse_line(const std::string& line) {
  EventLog log;
  log.feed(line + "\r\n");
  CHECK_MESSAGE(log.unread() == 0, line);
  CHECK_MESSAGE(log.events().size() <= 1, line);
  return log.events().empty() ? "" : log.events()[0];
}

const std::string kKey250(250, 'k');
const std::string kKey251(251, 'k');
const char* const kBadFormatLine = "CLIENT_ERROR bad command line format";
const char* const kBadExptimeLine = "CLIENT_ERROR invalid exptime argument";
const char* const kBadDeltaLine = "CLIENT_ERROR invalid numeric delta argument";
const char* const kBadChunkLine = "CLIENT_ERROR bad data chunk";

}  // namespace

TEST_CASE("a retrieval gives its keys one by one, and then their end") {
  CHECK(parse("get a\r\n") == Events{"get a", "end get"});
  CHECK(parse("get a bb a\r\n") == Events{"get a", "get bb", "get a", "end get"});
  CHECK(parse("gets a b\r\n") == Events{"gets a", "gets b", "end gets"});
  CHECK(parse("gat 10 a b\r\n") == Events{"gat a exptime 10", "gat b exptime 10", "end gat"});
  CHECK(parse("gats -1 a\r\n") == Events{"gats a exptime -1", "end gats"});
}

TEST_CASE("a retrieval without a key is a bad line, and one with a bad exptime says so") {
  for (const char* line : {"get", "get  ", "gets", "gat", "gats ", "gat 10", "gat x"})
    CHECK_MESSAGE(parse_line(line) == kBadFormatLine, line);
  for (const char* line : {"gat x a", "gats 1x a", "gat 2147483648 a", "gat +1 a", "gat a b"}) {
    CHECK_MESSAGE(parse_line(line) == kBadExptimeLine, line);
  }
}

TEST_CASE("a key is at most 250 bytes; a longer one spoils its whole line, and only that") {
  CHECK(parse("get " + kKey250 + "\r\n") == Events{"get " + kKey250, "end get"});
  CHECK(parse("get a " + kKey251 + " b\r\nget c\r\n") == Events{kBadFormatLine, "get c", "end get"});
  CHECK(parse("gat 0 a " + kKey251 + "\r\n") == Events{kBadFormatLine});
  CHECK(parse("gat x " + kKey251 + "\r\n") == Events{kBadExptimeLine});
  CHECK(parse_line("incr " + kKey251 + " x") == kBadFormatLine);
  CHECK(parse_line("touch " + kKey251 + " x") == kBadFormatLine);
  CHECK(parse_line("delete " + kKey251) == kBadFormatLine);
  CHECK(parse_line("delete " + kKey251 + " noreply").empty());
}

TEST_CASE("words are parted by spaces alone, and a key may hold any other byte") {
  CHECK(parse("get   a  b  \r\n") == Events{"get a", "get b", "end get"});
  CHECK(parse("get a\tb \x01\x7f\xff\r\n") == Events{"get a\tb", "get \x01\x7f\xff", "end get"});
  CHECK(parse("get a\r b\r\r\n") == Events{"get a\r", "get b\r", "end get"});
  CHECK(parse("get\ta\r\n") == Events{"ERROR"});
}

TEST_CASE("a key of any length ends at the next space or at the line's end, whatever bytes it has") {
  for (size_t length = 1; length <= 40; ++length) {
    for (const char byte : {'k', '!', '\t', '\x01', '\x7f', '\x80', '\xff'}) {
      const std::string key(length, byte);
      std::string lone = key;  // the only such byte, at the end
      std::fill(lone.begin(), lone.end() - 1, 'k');
      for (const std::string& each : {key, lone}) {
        CHECK(parse("get " + each + "\r\n") == Events{"get " + each, "end get"});
        CHECK(parse("get " + each + "\nget a\r\n") == Events{"get " + each, "end get", "get a", "end get"});
        CHECK(parse("get " + each + " a " + each + " \r\n") ==
              Events{"get " + each, "get a", "get " + each, "end get"});
      }
    }
  }
}

TEST_CASE("nothing but operators' commands may stand behind spaces") {
  for (const char* line : {"  get a", " version", "  mg a", " set a 0 0 1", "  watch", " stats", " quit"})
    CHECK_MESSAGE(parse_line(line) == "ERROR", line);
  CHECK(parse_line("  verbosity 1") == "verbosity 1");
  CHECK(parse_line(" flush_all") == "flush_all exptime 0");
}

TEST_CASE("a line of fewer than four bytes, its end included, is a bad one whatever it says") {
  CHECK(parse("\r\n\nx\r\nmn\n") == Events(4, kBadFormatLine));
  CHECK(parse("mn\r\n  \r\n") == Events{"noop", "ERROR"});
}

TEST_CASE("a line ends with \\n, with or without \\r; a NUL is a byte like any other") {
  CHECK(parse("get a\nget b\r\n") == Events{"get a", "end get", "get b", "end get"});
  CHECK(parse("get a\0b c\r\nversion\r\n"s) == Events{"get a\0b"s, "get c", "end get", "version"});
  CHECK(parse("delete a\0 junk\r\n"s) == Events{"delete key a\0"s});
  CHECK(parse("mn\0\r\nget\0 a\r\n"s) == Events{"ERROR", "ERROR"});
}

TEST_CASE("unknown, empty and upper-case words are an ERROR") {
  for (const char* line : {"  ", "ab", "GET a", "Set a 0 0 1", "getx a", "bget a", "flush_al", "flush_all1",
                           "verbosityx", "lru_crawlers enable", "watc", "misbehave", "a word"}) {
    CHECK_MESSAGE(parse_line(line) == "ERROR", line);
  }
  CHECK(parse_line("what noreply").empty());
  CHECK(parse_line("noreply").empty());
}

TEST_CASE("an operator's line is handed on as it is") {
  for (const std::string line : {"lru_crawler enable", "watch", "slabs  reassign 1 2", "cache_memlimit 64 noreply",
                                 "lru mode flat", "extstore x", "shutdown", "refresh_certs"}) {
    CHECK(parse_line(line) == "admin [" + line + "]");
    if (line != "watch") CHECK(parse_line("  " + line + " ") == "admin [" + line + "]");
  }
}

TEST_CASE("a storage command comes with its whole value") {
  CHECK(parse("set a 1 2 3\r\nabc\r\n") == Events{"set flags 1 exptime 2 length 3 key a = abc"});
  CHECK(parse("add a 1 2 0\r\n\r\n") == Events{"add flags 1 exptime 2 length 0 key a = "});
  CHECK(parse("replace a 0 -1 1\r\nx\r\n") == Events{"replace flags 0 exptime -1 length 1 key a = x"});
  CHECK(parse("append a 0 0 1 noreply\r\nx\r\n") == Events{"append flags 0 exptime 0 length 1 key a noreply = x"});
  CHECK(parse("prepend a 0 0 1\nx\r\n") == Events{"prepend flags 0 exptime 0 length 1 key a = x"});
  CHECK(parse("cas a 1 2 1 77\r\nx\r\n") == Events{"cas cas 77 flags 1 exptime 2 length 1 key a = x"});
  CHECK(parse("cas a 1 2 1 18446744073709551615 noreply\r\nx\r\n") ==
        Events{"cas cas 18446744073709551615 flags 1 exptime 2 length 1 key a noreply = x"});
  CHECK(parse("set a 0 0 1 noreplyx\r\nx\r\n") == Events{"set flags 0 exptime 0 length 1 key a = x"});
}

TEST_CASE("a value may hold anything, line ends included") {
  CHECK(parse("set a 0 0 9\r\nget b\r\n\r\n\r\nget c\r\n") ==
        Events{"set flags 0 exptime 0 length 9 key a = get b\r\n\r\n", "get c", "end get"});
  const std::string binary("\0\xff\r\0\n", 5);
  CHECK(parse("set a 0 0 5\r\n" + binary + "\r\n") == Events{"set flags 0 exptime 0 length 5 key a = " + binary});
}

TEST_CASE(
    "a value that \\r\\n does not follow is a bad data chunk; what comes after its two last bytes is the next "
    "command") {
  CHECK(parse("set a 0 0 3\r\nabcXYget b\r\n") == Events{kBadChunkLine, "get b", "end get"});
  CHECK(parse("set a 0 0 3\r\nabc\r\r\r\n") == Events{kBadChunkLine, kBadFormatLine});
  CHECK(parse("set a 0 0 3\r\nabcdef\r\n") == Events{kBadChunkLine, kBadFormatLine});  // "f"
  CHECK(parse("set a 0 0 3 noreply\r\nabcXYget b\r\n") == Events{"get b", "end get"});
}

TEST_CASE("a storage line without a length is refused, and what follows it is a line of its own") {
  for (const char* line :
       {"set", "set a", "set a 0 0", "cas a 0 0", "set a 0 0 x", "set a 0 0 -1", "set a 0 0 2147483646", "set a 0 0 +1",
        "set a 0 0 4294967297", "set a 0 0 noreply", "set a 0 0 x noreply"}) {
    CHECK_MESSAGE((parse(std::string(line) + "\r\nget b\r\n") == Events{kBadFormatLine, "get b", "end get"}), line);
  }
}

TEST_CASE("the value behind a storage line that is wrong otherwise is dropped") {
  for (const std::string& line : {"set a x 0 3"s, "set a 0 x 3"s, "set a -1 0 3"s, "set a 18446744073709551616 0 3"s,
                                  "cas a 0 0 3"s, "cas a 0 0 3 x"s, "cas a 0 0 3 -1"s, "set " + kKey251 + " 0 0 3"}) {
    CHECK_MESSAGE((parse(line + "\r\nget\r\nget b\r\n") == Events{kBadFormatLine, "get b", "end get"}), line);
  }
  CHECK(parse("set a x 0 3 noreply\r\nget\r\nget b\r\n") == Events{"get b", "end get"});
  CHECK(parse("cas a 0 0 3 noreply\r\nget\r\nget b\r\n") == Events{"get b", "end get"});
}

TEST_CASE("words too many are not looked at") {
  CHECK(parse("set a 0 0 1 noreply x\r\nx\r\n") == Events{"set flags 0 exptime 0 length 1 key a = x"});
  CHECK(parse("cas a 0 0 1 2 3 noreply\r\nx\r\n") == Events{"cas cas 2 flags 0 exptime 0 length 1 key a noreply = x"});
  CHECK(parse_line("decr a 1 2 3") == "decr by 1 key a");
  CHECK(parse_line("touch a 0 0 0") == "touch exptime 0 key a");
  CHECK(parse_line("delete a 10") == "delete key a");
  CHECK(parse_line("delete a 0 noreply") == "delete key a noreply");
}

TEST_CASE(
    "flags and exptime of a storage command are what C makes of them, cut to 32 bits; other numbers are digits that "
    "fit") {
  CHECK(parse("set a 4294967297 4294967297 1\r\nx\r\n") == Events{"set flags 1 exptime 1 length 1 key a = x"});
  CHECK(parse("set a +07 \t1\v! 1\r\nx\r\n") == Events{"set flags 7 exptime 1 length 1 key a = x"});
  CHECK(parse_line("touch a 2147483648") == kBadExptimeLine);
  CHECK(parse_line("touch a -2147483648") == "touch exptime -2147483648 key a");
  CHECK(parse_line("incr a 18446744073709551615") == "incr by 18446744073709551615 key a");
  CHECK(parse_line("incr a 18446744073709551616") == kBadDeltaLine);
  CHECK(parse_line("incr a +1") == kBadDeltaLine);
}

TEST_CASE("incr and decr") {
  CHECK(parse_line("incr a 5") == "incr by 5 key a");
  CHECK(parse_line("decr a 5 noreply") == "decr by 5 key a noreply");
  CHECK(parse_line("decr a 5 junk") == "decr by 5 key a");
  for (const char* line : {"incr", "incr a"}) CHECK_MESSAGE(parse_line(line) == kBadFormatLine, line);
  for (const char* line : {"incr a x", "incr a -1", "decr a 1x"})
    CHECK_MESSAGE(parse_line(line) == kBadDeltaLine, line);
  for (const char* line : {"incr a noreply", "incr a x noreply"}) CHECK_MESSAGE(parse_line(line).empty(), line);
}

TEST_CASE("delete") {
  CHECK(parse_line("delete a") == "delete key a");
  CHECK(parse_line("delete a noreply") == "delete key a noreply");
  CHECK(parse_line("delete noreply") == "delete key noreply noreply");
  CHECK(parse_line("delete") == kBadFormatLine);
}

TEST_CASE("touch") {
  CHECK(parse_line("touch a 60") == "touch exptime 60 key a");
  CHECK(parse_line("touch a -1 noreply") == "touch exptime -1 key a noreply");
  CHECK(parse_line("touch a x") == kBadExptimeLine);
  CHECK(parse_line("touch a noreply").empty());
  for (const char* line : {"touch", "touch a"}) CHECK_MESSAGE(parse_line(line) == kBadFormatLine, line);
}

TEST_CASE("flush_all takes a delay, noreply, both or none") {
  CHECK(parse_line("flush_all") == "flush_all exptime 0");
  CHECK(parse_line("flush_all 30") == "flush_all exptime 30");
  CHECK(parse_line("flush_all -1") == "flush_all exptime -1");
  CHECK(parse_line("flush_all 0 0") == "flush_all exptime 0");
  CHECK(parse_line("flush_all noreply") == "flush_all exptime 0 noreply");
  CHECK(parse_line("flush_all 30 noreply") == "flush_all exptime 30 noreply");
  CHECK(parse_line("flush_all 0 0 0") == "flush_all exptime 0");
  CHECK(parse_line("flush_all x") == kBadExptimeLine);
  CHECK(parse_line("flush_all noreply 0") == kBadExptimeLine);
  CHECK(parse_line("flush_all x noreply").empty());
}

TEST_CASE("the commands about the server") {
  CHECK(parse_line("version") == "version");
  CHECK(parse_line("version noreply x") == "version");
  CHECK(parse_line("verbosity 1") == "verbosity 1");
  CHECK(parse_line("verbosity 1 noreply") == "verbosity 1 noreply");
  CHECK(parse_line("verbosity") == kBadFormatLine);
  CHECK(parse_line("verbosity 1 2 3") == "verbosity 1");
  CHECK(parse_line("verbosity x") == kBadFormatLine);
  CHECK(parse_line("verbosity noreply").empty());
  CHECK(parse_line("stats") == "stats 0");
  CHECK(parse_line("stats settings") == "stats 1 settings");
  CHECK(parse_line("stats cachedump 1 2 3") == "stats 4 cachedump 1 2");
  CHECK(parse("quit now\r\nget a\r\n") == Events{"quit", "close"});  // nothing is read any more
}

TEST_CASE("a web browser is hung up on") {
  CHECK(parse_line("GET / HTTP/1.1") == "close");
  CHECK(parse_line("POST /x HTTP/1.0") == "close");
  CHECK(parse_line("mzz HTTP/") == "close");
  CHECK(parse_line("adx / HTTP/1.1") == "close");
  CHECK(parse_line("HTTP/1.1") == "ERROR");
}

TEST_CASE("a value above the inline limit is streamed in pieces") {
  const Limits small{4, 8192};
  CHECK(parse("set a 1 2 4\r\nabcd\r\n", small) == Events{"set flags 1 exptime 2 length 4 key a = abcd"});
  CHECK(parse("set a 1 2 5\r\nab\r\nd\r\nget b\r\n", small) ==
        Events{"set flags 1 exptime 2 length 5 key a streamed", "part ab\r\nd", "value ok", "get b", "end get"});
  CHECK(parse("cas a 1 2 5 9 noreply\r\nabcdeXYget b\r\n", small) ==
        Events{"cas cas 9 flags 1 exptime 2 length 5 key a noreply streamed", "part abcde", "value bad", "get b",
               "end get"});
}

TEST_CASE("a streamed value gives its first piece before its last byte is there") {
  EventLog log(Limits{4, 8192});
  log.feed("set a 0 0 100\r\nabc");
  CHECK(log.events() == Events{"set flags 0 exptime 0 length 100 key a streamed", "part abc"});
}

TEST_CASE("a swallowed value and its terminator are dropped") {
  for (const size_t piece : {size_t{1}, size_t{3}, size_t{1000}}) {
    EventLog log(Limits{4, 8192}, true);
    log.feed_by(piece, "set a 0 0 7\r\nget b\r\nXYget c\r\n");
    CHECK(log.events() == Events{"set flags 0 exptime 0 length 7 key a streamed", "get c", "end get"});
  }
}

TEST_CASE("swallowing may begin in the middle of a value, and at its very end") {
  for (size_t before = 13; before <= 13 + 7; ++before) {
    const std::string stream = "set a 0 0 7\r\nget b\r\nXYget c\r\n";
    TextParser parser(Limits{4, 8192});
    Command command;
    size_t used = 0;
    Step step{};
    do {
      step = parser.next(std::string_view(stream).substr(used, before - used), command);
      used += step.consumed;
    } while (step.event != Event::kNeedMore);
    parser.swallow_value();
    step = parser.next(std::string_view(stream).substr(used), command);
    CHECK(step.event == Event::kKey);
    CHECK(command.key == "c");
  }
}

TEST_CASE("bytes of a value that were taken from elsewhere are not awaited in the input") {
  for (const size_t elsewhere : {1, 3, 7}) {
    const std::string value = "1234567";
    TextParser parser(Limits{4, 8192});
    Command command;
    REQUIRE(parser.next("set a 0 0 7\r\n", command).event == Event::kValueBegin);
    parser.skip_part(elsewhere);
    const std::string rest = value.substr(elsewhere) + "\r\nget b\r\n";
    size_t used = 0;
    if (elsewhere < value.size()) {
      const Step step = parser.next(rest, command);
      CHECK(step.event == Event::kValuePart);
      CHECK(command.value == value.substr(elsewhere));
      used = step.consumed;
    } else {
      CHECK(parser.next("\r", command).event == Event::kNeedMore);
    }
    const Step step = parser.next(std::string_view(rest).substr(used), command);
    CHECK(step.event == Event::kValueEnd);
    CHECK(command.terminator_ok);
    CHECK(parser.next(std::string_view(rest).substr(used + step.consumed), command).event == Event::kKey);
    CHECK(command.key == "b");
  }
}

TEST_CASE("the value of an ms whose line is wrong is not taken for commands, as long as its length is known") {
  CHECK(parse("ms a 9 y\r\nflush_all\r\nget b\r\n") == Events{"CLIENT_ERROR invalid flag", "get b", "end get"});
  CHECK(parse("ms a S9\r\nflush_all\r\n") == Events{"CLIENT_ERROR bad command line format", "flush_all exptime 0"});
}

TEST_CASE("a multiget may be longer than any buffer") {
  std::string line = "get";
  Events expected;
  for (int i = 0; i < 20000; ++i) {
    line += " some-key-" + std::to_string(i);
    expected.push_back("get some-key-" + std::to_string(i));
  }
  expected.push_back("end get");
  for (const size_t piece : {size_t{1}, size_t{1000}, line.size() + 2}) {
    EventLog log;
    log.feed_by(piece, line + "\r\n");
    CHECK(log.events() == expected);
    CHECK(log.views_in_input());
    // A line that arrives byte by byte costs one call a byte and a key, not one pass over the line a byte.
    CHECK(log.calls() <= line.size() + 2 * expected.size());
  }
}

TEST_CASE("a bad key in a line longer than retrieval_line takes the place of the end") {
  const Limits limits{4096, 2049};
  std::string keys;
  Events expected;
  for (int i = 0; i < 1000; ++i) {
    keys += " k" + std::to_string(i);
    expected.push_back("gets k" + std::to_string(i));
  }
  expected.push_back(kBadFormatLine);
  expected.push_back("version");
  const std::string line = "gets" + keys + " " + std::string(5000, 'x') + " y\r\nversion\r\n";
  CHECK(parse(line, limits) == expected);
  CHECK(EventLog(limits).feed_by(1, line).events() == expected);
  CHECK(parse(line, Limits{4096, 20000}) == Events{kBadFormatLine, "version"});
}

TEST_CASE("a long gat needs an exptime too") {
  const std::string spaces(9000, ' ');
  CHECK(parse("gat" + spaces + "5 a" + spaces + "b\r\n") == Events{"gat a exptime 5", "gat b exptime 5", "end gat"});
  CHECK(parse("gat x" + spaces + "a\r\nversion\r\n") == Events{kBadExptimeLine, "version"});
  CHECK(parse("gat " + std::string(9000, 'x') + " a\r\nversion\r\n") == Events{kBadExptimeLine, "version"});
  CHECK(parse("gat" + spaces + "\r\nversion\r\n") == Events{kBadFormatLine, "version"});
  CHECK(parse("get" + spaces + "\r\nversion\r\n") == Events{kBadFormatLine, "version"});
}

TEST_CASE("a line without end is closed upon, unless it is a retrieval") {
  CHECK(parse(std::string(2048, 'x')).empty());
  CHECK(parse(std::string(2049, 'x')) == Events{"close"});
  CHECK(parse("set a 0 0 1" + std::string(2049, ' ')) == Events{"close"});
  CHECK(parse(std::string(101, ' ') + "get a" + std::string(2049, ' ')) == Events{"close"});
  CHECK(parse("get a" + std::string(3000, ' ')).empty());
  CHECK(parse("get a" + std::string(17000, ' ')) == Events{"get a"});
  CHECK(EventLog().feed_by(1, std::string(5000, 'x')).events() == Events{"close"});
  CHECK(parse("  get" + std::string(20000, ' ') + "a\r\nversion\r\n") == Events{"ERROR", "version"});
}

TEST_CASE("a long junk line that arrives whole is an ERROR, as in memcached") {
  for (const size_t length : {3000, 9000, 16000}) {
    CHECK(parse(std::string(length, 'x') + "\r\nversion\r\n") == Events{"ERROR", "version"});
  }
  CHECK(parse("set" + std::string(3000, ' ') + "a 0 0 1\r\nx\r\n") ==
        Events{"set flags 0 exptime 0 length 1 key a = x"});
}

namespace {

// One of everything, good and bad.
const std::vector<std::string>& streams() {
  static const std::vector<std::string> all = {
      "get a\r\n",
      "get a b  c \r\n",
      "gets a b\nget c\n",
      "gat 10 a b\r\n",
      "gats -1 a\r\n",
      "gat x a\r\nversion\r\n",
      "get " + kKey250 + "\r\n",
      "get " + kKey251 + "\r\nget a\r\n",
      "get a\r\nget b c\r\nget d\nget e \r\nget\r\nget \r\nget  f\r\n",
      "get a\rb\r\nget a\r \r\nget a\r\r\nget \r\r\n",
      "get a " + kKey251 + " b\r\nversion\r\n",
      "set a 1 2 3\r\nabc\r\n",
      "set a 1 2 0\r\n\r\nget a\r\n",
      "set a 1 2 9 noreply\r\nget b\r\n\r\n\r\nversion\r\n",
      "set a 1 2 3\r\nabcXYget b\r\n",
      "set a 1 2 3 noreply\r\nabcXYget b\r\n",
      "add a 1 2 6\n\r\n\r\n\r\n\r\nquit\r\n",
      "replace a 0 0 1\r\nx\r\nappend a 0 0 1\r\nx\r\nprepend a 0 0 1\r\nx\r\n",
      "cas a 1 2 5 77\r\nabcde\r\ncas a 1 2 5 77 noreply\r\nabcde\r\n",
      "incr a 1\r\ndecr a 2 noreply\r\nincr a x\r\n",
      "delete a\r\ndelete a 0\r\ndelete a 1\r\ndelete a noreply\r\n",
      "touch a 5\r\ntouch a x\r\ntouch a x noreply\r\n",
      "flush_all\r\nflush_all 5 noreply\r\nflush_all x\r\n",
      "version\r\nverbosity 1\r\nstats\r\nstats settings\r\nquit\r\n",
      "ms a 9\r\nflush_all\r\nget b\r\n",
      "ms YWJj 3 b c F7 T30 k O1\r\nabc\r\nms a 3 y\r\nabc\r\nms a 3\r\nabcXYmn\r\n",
      "mg a v s f t Oxyz\r\nmg YWJj b k\r\nmg YQ b k\r\nmg\r\nmn\r\n",
      "md a I T30\r\nma n N0 J13 D2 MD v\r\nme a\r\n",
      "\r\n\r\n \r\nx\r\nxx\r\n",
      "get a\0b c\r\nget \0\r\ngat 1\0 a\r\n"s,
      "GET / HTTP/1.1\r\nversion\r\n",
  };
  return all;
}

}  // namespace

TEST_CASE("it does not matter where the bytes are cut") {
  for (const Limits limits : {Limits{}, Limits{2, 8192}}) {
    for (const std::string& stream : streams()) {
      const Events whole = parse(stream, limits);
      CHECK_FALSE(whole.empty());
      for (size_t cut = 0; cut <= stream.size(); ++cut) {
        EventLog log(limits);
        log.feed(std::string_view(stream).substr(0, cut)).feed(std::string_view(stream).substr(cut));
        CHECK_MESSAGE(log.events() == whole, stream << " cut at " << cut);
        CHECK(log.views_in_input());
      }
      for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}}) {
        CHECK_MESSAGE(EventLog(limits).feed_by(piece, stream).events() == whole, stream << " by " << piece);
      }
    }
  }
}

TEST_CASE("a get as clients write it means the same as one whose further spaces need the general way") {
  for (const std::string& key : {"a"s, "key:1"s, std::string(7, 'k'), std::string(8, 'k'), kKey250, kKey251, "a\0b"s,
                                 "a\rb"s, "\x80\xff"s, "a\tb"s}) {
    for (const std::string end : {"\r\n", "\n", "\r\r\n"}) {
      const auto both = [&](std::string_view rest) {
        const std::string words = key + std::string(rest) + end + "version\r\n";
        CHECK_MESSAGE(parse("get " + words) == parse("get  " + words), words);
      };
      both("");
      both(" b");
      both(" b " + kKey250);
      both(" b " + kKey251);
      both("\r b");
    }
  }
}

TEST_CASE("commands may be pipelined") {
  std::string pipeline;
  Events expected;
  for (const std::string& stream : streams()) {
    const Events events = parse(stream);
    if (events.back() == "close" || events.back() == "quit") continue;
    pipeline += stream;
    expected.insert(expected.end(), events.begin(), events.end());
  }
  CHECK(parse(pipeline) == expected);
  CHECK(EventLog().feed_by(7, pipeline).events() == expected);
}

TEST_CASE("the buffer that min_buffer asks for is enough for the longest line with the longest inline value") {
  for (const Limits limits : {Limits{100, 0}, Limits{4096, 8192}, Limits{20000, 8192}}) {
    std::string line = "set a 0 0 " + std::to_string(limits.inline_value) + " noreply";
    line.append(TextParser::kMaxLine - 1 - line.size(), ' ');
    EventLog log(limits);
    log.feed_by(1, line + "\r\n" + std::string(limits.inline_value, 'v') + "\r\n");
    CHECK_FALSE(log.stuck());
    CHECK(log.events().size() == 1);
    CHECK(log.unread() == 0);
  }
}

TEST_CASE("a parser goes on where it was stopped, between any two keys") {
  const std::string line = "get a b c\r\nget d\r\n";
  TextParser parser{Limits{}};
  std::string_view rest = line;
  Command command;
  std::string keys;
  for (int i = 0; i < 6; ++i) {
    // Each time at another address, as when the caller moved the rest to the front of its buffer.
    const auto moved = std::make_unique<char[]>(rest.size() + 1);
    std::memcpy(moved.get(), rest.data(), rest.size());
    const Step step = parser.next({moved.get(), rest.size()}, command);
    keys += step.event == Event::kKey ? std::string(command.key) : "|";
    rest.remove_prefix(step.consumed);
  }
  CHECK(keys == "abc|d|");
}

TEST_CASE("an empty input asks for more, and changes nothing") {
  TextParser parser{Limits{4, 8192}};
  Command command;
  CHECK(parser.next({}, command).event == Event::kNeedMore);
  const std::string line = "set a 0 0 9\r\n";
  CHECK(parser.next(line, command).event == Event::kValueBegin);
  CHECK(parser.next({}, command).event == Event::kNeedMore);
  parser.swallow_value();
  CHECK(parser.next({}, command).event == Event::kNeedMore);
}
