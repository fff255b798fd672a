// The meta commands as a specification: the Command of each line.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "memcache/text/text_parser.h"
#include "memcache_text_events.h"

namespace {

using namespace egret::memcache;
using Events = std::vector<std::string>;

Events parse(std::string_view bytes, Limits limits = {}) {
  return EventLog(limits).feed(bytes).events();
}

std::string parse_line(const std::string& line) {
  const Events events = parse(line + "\r\n");
  CHECK_MESSAGE(events.size() == 1, line);
  return events.empty() ? "" : events[0];
}

constexpr const char* kGetOptions = " want-cas want-meta";
const std::string kKey250(250, 'k');

}  // namespace

TEST_CASE("mg: its flags are options of a get") {
  const auto is = [](const std::string& flags, const std::string& options) {
    CHECK_MESSAGE(parse_line("mg a " + flags) == "mg key a" + options, flags);
  };
  is("", " no-value want-cas want-meta");
  is("s t f h l c k O1", " no-value want-cas want-meta");
  is("v", kGetOptions);
  is("v q", std::string(kGetOptions) + " quiet");
  is("v T30", " exptime=30 want-cas want-meta");
  is("v T-1", " exptime=-1 want-cas want-meta");
  is("v N30", " want-cas vivify=30 want-meta");
  is("v N30 E99", " want-cas new-cas=99 vivify=30 want-meta");
  is("v E99", kGetOptions);
  is("v R60", " want-cas recache=60 want-meta");
  is("v u", std::string(kGetOptions) + " no-bump");
  is("v C5", " cas=5 want-cas want-meta");
  is("C5", " no-value want-cas want-meta");
  is("v R60 T30", " exptime=30 want-cas recache=60 want-meta");
  is("v T30 R60", " exptime=30 want-cas touch-first recache=60 want-meta");
  is("v N30 T60", " exptime=60 want-cas vivify=60 want-meta");  // a created item ends with what comes last
  is("v T60 N30", " exptime=60 want-cas vivify=30 want-meta");
  is("v P L9", kGetOptions);
}

TEST_CASE("mg: t before T asks for the ttl that was, T before t for the one that is") {
  CHECK(parse_line("mg a v t T30") == "mg key a exptime=30 want-cas want-meta");
  CHECK(parse_line("mg a v T30 t") == "mg key a exptime=30 want-cas want-meta new-ttl");
}

TEST_CASE("ms: its flags are fields of a set") {
  const auto is = [](const std::string& flags, const std::string& expected) {
    CHECK_MESSAGE(parse("ms a 2 " + flags + "\r\nhi\r\n") == Events{"ms key a" + expected + " = hi"}, flags);
  };
  const auto plain = [](const std::string& mode) { return " mode " + mode + " flags 0 exptime 0 length 2"; };
  is("", " want-meta" + plain("set"));
  is("F5 T30 q", " want-meta mode set flags 5 exptime 30 length 2 quiet");
  is("c", " want-cas want-meta" + plain("set"));
  is("E7", " new-cas=7 want-meta" + plain("set"));
  is("C7", " cas=7 want-meta" + plain("set"));
  is("C7 I", " cas=7 invalidate want-meta" + plain("set"));
  is("I", " want-meta" + plain("set"));
  is("ME", " want-meta" + plain("add"));
  is("ME C7", " want-meta" + plain("add"));
  is("MR", " want-meta" + plain("replace"));
  is("MR C7", " cas=7 want-meta" + plain("set"));
  is("MA", " want-meta" + plain("append"));
  is("MP C7", " cas=7 want-meta" + plain("prepend"));
  is("MA N30", " vivify=30 want-meta" + plain("append"));
  is("MA N30 T0", " vivify=30 want-meta" + plain("append"));
  is("N30", " want-meta" + plain("set"));
  is("MS", " want-meta" + plain("set"));
  is("MSET", " want-meta" + plain("set"));
  is("MP C0", " want-meta" + plain("prepend"));  // 0 is no CAS to what extends a value
  is("C0 I", " cas=0 want-meta" + plain("set"));
}

TEST_CASE("ms: a long value is streamed, as any other") {
  CHECK(parse("ms a 5 q\r\nhello\r\n", Limits{4, 8192}) ==
        Events{"ms key a want-meta mode set flags 0 exptime 0 length 5 quiet streamed", "part hello", "value ok"});
}

TEST_CASE("md and ma") {
  CHECK(parse_line("md a") == "md key a");
  CHECK(parse_line("md a q C5") == "md key a cas=5 quiet");
  CHECK(parse_line("md a I T30") == "md key a exptime=30 invalidate");
  CHECK(parse_line("md a T30") == "md key a");
  CHECK(parse_line("md a x E5") == "md key a new-cas=5 drop-value");
  CHECK(parse_line("ma a") == "ma key a want-cas want-meta by 1");
  CHECK(parse_line("ma a MD D5") == "ma key a want-cas decrement want-meta by 5");
  CHECK(parse_line("ma a M- D5") == "ma key a want-cas decrement want-meta by 5");
  CHECK(parse_line("ma a MI T9 q") == "ma key a exptime=9 want-cas want-meta by 1 quiet");
  CHECK(parse_line("ma a N30 J13") == "ma key a want-cas create=13@30 want-meta by 1");
  CHECK(parse_line("ma a C5 E6") == "ma key a cas=5 want-cas new-cas=6 want-meta by 1");
}

TEST_CASE("me looks and leaves no trace, mn is a noop") {
  CHECK(parse_line("me a") == "me key a no-value want-cas want-meta peek");
  CHECK(parse_line("me a and whatever") == "me key a no-value want-cas want-meta peek");
  CHECK(parse_line("mn") == "noop");
}

TEST_CASE("with b the key is base64") {
  CHECK(parse_line("mg YSBi b") == "mg key a b no-value want-cas want-meta");
  CHECK(parse_line("me YSBi b") == "me key a b no-value want-cas want-meta peek");
  CHECK(parse_line("md YSBi b") == "md key a b");
  CHECK(parse_line("mg YSB b") == "CLIENT_ERROR error decoding key");
  CHECK(parse_line("md YSB b") == "CLIENT_ERROR error decoding key");
  CHECK(parse_line("me YSB b") == "CLIENT_ERROR bad command line format");
}

TEST_CASE("flags that are wrong") {
  CHECK(parse_line("mg a v v") == "CLIENT_ERROR duplicate flag");
  CHECK(parse_line("mg a y") == "CLIENT_ERROR invalid flag");
  for (const char* none : {"\xff", "!", "~", "-", "{"}) {
    CHECK(parse_line("mg a " + std::string(none)) == "CLIENT_ERROR bad command line format");
    CHECK(parse_line("ma a " + std::string(none)) == "CLIENT_ERROR bad command line format");
  }
  CHECK(parse("ms a 2 !\r\nmn again\r\n") == Events{"CLIENT_ERROR bad command line format", "noop"});
  CHECK(parse_line("mg a T+1") == "CLIENT_ERROR bad token in command line format");
  CHECK(parse_line("mg a Tx") == "CLIENT_ERROR bad token in command line format");
  CHECK(parse_line("mg a T") == "CLIENT_ERROR bad token in command line format");
  CHECK(parse_line("mg a Cx") == "CLIENT_ERROR bad token in command line format");
  CHECK(parse_line("md a v v") == "CLIENT_ERROR duplicate flag");
  CHECK(parse_line("ma a v v") == "CLIENT_ERROR invalid or duplicate flag");
  CHECK(parse_line("ms a 2 S2") == "CLIENT_ERROR invalid flag");
  CHECK(parse_line("ma a D") == "CLIENT_ERROR invalid or duplicate flag");
  CHECK(parse_line("ma a MX") == "CLIENT_ERROR invalid mode for ma M token");
  CHECK(parse("ms a 2 MX\r\nhi\r\nmn\r\n") == Events{"CLIENT_ERROR invalid mode for ms M token", "noop"});
  for (const char* mode : {"M", "Ms", "Mset", "M "})
    CHECK(parse("ms a 2 " + std::string(mode) + "\r\nhi\r\nmn\r\n") ==
          Events{"CLIENT_ERROR invalid mode for ms M token", "noop"});
  CHECK(parse("ms a 2 Fx\r\nhi\r\nmn\r\n") == Events{"CLIENT_ERROR bad command line format", "noop"});
  CHECK(parse("ms a 2 q q\r\nhi\r\nmn\r\n") == Events{"CLIENT_ERROR duplicate flag", "noop"});
}

TEST_CASE("an opaque has at most 31 bytes") {
  const std::string longest(31, 'x');
  CHECK(parse_line("mg a O" + longest) == "mg key a no-value want-cas want-meta");
  CHECK(parse_line("mg a O" + longest + "x") == "CLIENT_ERROR opaque token too long");
  CHECK(parse_line("md a O" + longest + "x") == "CLIENT_ERROR opaque token too long");
}

TEST_CASE("lines that are wrong as a whole") {
  for (const char* command : {"mg", "ms", "md", "ma", "me"})
    CHECK(parse_line(command) == "CLIENT_ERROR bad command line format");
  CHECK(parse_line("ms a") == "CLIENT_ERROR bad command line format");
  CHECK(parse_line("ms a x") == "CLIENT_ERROR bad command line format");
  CHECK(parse_line("ms a -1") == "CLIENT_ERROR bad command line format");
  CHECK(parse_line("mg " + kKey250 + "k") == "CLIENT_ERROR bad command line format");
  CHECK(parse_line("mg " + kKey250) == "mg key " + kKey250 + " no-value want-cas want-meta");
  CHECK(parse("ms " + kKey250 + "k 2\r\nhi\r\nmn\r\n") == Events{"CLIENT_ERROR bad command line format", "noop"});
  CHECK(parse_line("ma " + kKey250 + "k") == "CLIENT_ERROR invalid or duplicate flag");
  const std::string flags = " s t f h l c k v q u O P L I T1 N1 R1 F1";  // eighteen, and two words before them
  CHECK(parse_line("mg a" + flags) != "CLIENT_ERROR options flags are too long");
  CHECK(parse_line("mg a" + flags + " C1") == "CLIENT_ERROR options flags are too long");
  CHECK(parse_line("md a" + flags + " C1") == "CLIENT_ERROR options flags are too long");
  CHECK(parse_line("ma a" + flags + " C1") == "CLIENT_ERROR invalid or duplicate flag");
}

TEST_CASE("a value without its line end is dropped, and said to be bad even if the client wants quiet") {
  CHECK(parse("ms a 2 q\r\nhiXYmn\r\n") == Events{"CLIENT_ERROR bad data chunk", "noop"});
}
