// The input of a text client that has not authenticated.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "memcache/client_parser.h"
#include "memcache_text_events.h"

namespace {

using namespace egret::memcache;
using Events = std::vector<std::string>;
using Log = BasicEventLog<AuthParser>;

Events parse(std::string_view bytes) {
  return Log().feed(bytes).events();
}

constexpr const char* kStranger = "CLIENT_ERROR unauthenticated";

}  // namespace

TEST_CASE("a set of any key authenticates") {
  CHECK(parse("set x 0 0 9\r\nfoo bar b\r\n") == Events{"authenticate key foo = bar b"});  // a password may have spaces
  CHECK(parse("set auth 1 2 7 noreply\nfoo bar\r\n") == Events{"authenticate key foo = bar"});
}

TEST_CASE("every other line gets an error") {
  for (const char* line : {"get a", "version", "stats", "mn again", "set  a", "set a 0 0 x", "add a 0 0 3", "      ",
                           " set a 0 0 3", "set a 0 0 4294967296"}) {
    CHECK_MESSAGE(parse(std::string(line) + "\r\n") == Events{kStranger}, line);
  }
  CHECK(parse("get a\r\nget b\r\n") == Events{kStranger, kStranger});
}

TEST_CASE("a value that is none") {
  CHECK(parse("set a 0 0 3\r\nfoo\r\n") == Events{"CLIENT_ERROR bad authentication token format"});
  CHECK(parse("set a 0 0 0\r\n\r\n") == Events{"CLIENT_ERROR bad authentication token format"});
  CHECK(parse("set a 0 0 7\r\nfoo barXY") == Events{"CLIENT_ERROR bad command line termination"});
}

TEST_CASE("a value too long for a user passes through, is judged by its form, and the stream stays in step") {
  const std::string value(5000, 'v');
  CHECK(parse("set a 0 0 5000\r\n" + value + "\r\nset a 0 0 3\r\na b\r\n") ==
        Events{"CLIENT_ERROR bad authentication token format", "authenticate key a = b"});
  CHECK(parse("set a 0 0 5002\r\na " + value + "\r\n") == Events{"authenticate key  = "});
  CHECK(parse("set a 0 0 5002\r\na " + value + "XY") == Events{"CLIENT_ERROR bad command line termination"});
}

TEST_CASE("a value that is far too long is refused at once, and lines follow") {
  for (const char* length : {"16385", "2147483646", "4294967295"}) {
    CHECK(parse("set a 0 0 " + std::string(length) + "\r\nset a 0 0 3\r\na b\r\n") ==
          Events{"CLIENT_ERROR auth token too long", "authenticate key a = b"});
  }
}

TEST_CASE("a short line ends the connection") {
  for (const char* line : {"", "x", "mn", "quit", "    "}) {
    CHECK_MESSAGE(parse(std::string(line) + "\r\n") == Events{"close"}, line);
  }
  CHECK(parse("get a\n") == Events{"close"});
  CHECK(parse("get a\r\n") == Events{kStranger});
}

TEST_CASE("a line that does not end ends the connection") {
  CHECK(parse(std::string(AuthParser::kMaxLine, 'x')).empty());
  CHECK(parse(std::string(AuthParser::kMaxLine + 1, 'x')) == Events{"close"});
}

TEST_CASE("it does not matter where the bytes are cut") {
  const std::string stream = "get a\r\nset a 0 0 2000\r\n" + std::string(2000, 'v') + "\r\nset b 0 0 7\r\nfoo bar\r\n";
  const Events whole = parse(stream);
  for (size_t cut = 0; cut <= stream.size(); cut += cut < 40 || cut > 2010 ? 1 : 97) {
    CHECK_MESSAGE(Log().feed(stream.substr(0, cut)).feed(stream.substr(cut)).events() == whole, cut);
  }
  CHECK(Log().feed_by(1, stream).events() == whole);
}

TEST_CASE("the first byte decides the dialect, for good") {
  ClientParser binary{Limits{}};
  ClientParser text{Limits{}};
  ClientParser only_text(Limits{}, Protocol::kText, false);
  ClientParser only_binary(Limits{}, Protocol::kBinary, false);
  Command command;
  const std::string noop = std::string("\x80\x0a", 2) + std::string(22, '\0');
  CHECK(binary.next({}, command).event == Event::kNeedMore);
  CHECK(binary.next(noop, command).event == Event::kCommand);
  CHECK(command.dialect == Dialect::kBinary);
  CHECK(binary.next("mn\r\n", command).event == Event::kClose);
  CHECK(text.next("mn\r\n", command).event == Event::kCommand);
  CHECK(text.next(noop.substr(0, 2) + "\r\n", command).event == Event::kError);
  CHECK(only_text.next(noop.substr(0, 2) + "\r\n", command).event == Event::kError);
  CHECK(only_binary.next("mn\r\n", command).event == Event::kClose);
}

TEST_CASE("who has said who it is speaks as any other") {
  ClientParser parser(Limits{}, Protocol::kAuto, true);
  Command command;
  CHECK(parser.next("mn again\r\n", command).event == Event::kError);
  parser.set_authenticated();
  CHECK(parser.next("mn\r\n", command).event == Event::kCommand);
}
