// The binary protocol as a specification: the events of each packet, however the bytes arrive.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "memcache/binary/binary_parser.h"
#include "memcache_binary_packet.h"
#include "memcache_text_events.h"

namespace {

using namespace egret::memcache;
using binary::Opcode;
using Events = std::vector<std::string>;
using Log = BasicEventLog<BinaryParser>;

Events parse(std::string_view bytes, Limits limits = {}) {
  return Log(limits).feed(bytes).events();
}

std::string parse_one(const Packet& packet) {
  const Events events = parse(packet.bytes());
  CHECK(events.size() == 1);
  return events.empty() ? "" : events[0];
}

const std::string kSetExtras = std::string("\0\0\0\x07", 4) + std::string("\0\0\0\x1e", 4);
const std::string kCountExtras = big(uint64_t{3}) + big(uint64_t{10}) + big(uint32_t{30});
const std::string kTouchExtras = big(uint32_t{60});

}  // namespace

TEST_CASE("retrievals are one key each, quiet or not") {
  CHECK(parse_one({Opcode::kGet, "k"}) == "get key k want-cas");
  CHECK(parse_one({Opcode::kGetQ, "k"}) == "get key k want-cas quiet");
  CHECK(parse_one({Opcode::kGetK, "k"}) == "get key k want-cas");
  CHECK(parse_one({Opcode::kGetKQ, "k"}) == "get key k want-cas quiet");
  CHECK(parse_one({Opcode::kGat, "k", "", kTouchExtras}) == "get key k exptime=60 want-cas");
  CHECK(parse_one({Opcode::kGatKQ, "k", "", kTouchExtras}) == "get key k exptime=60 want-cas quiet");
  CHECK(parse_one({Opcode::kTouch, "k", "", kTouchExtras}) == "touch key k exptime=60 no-value want-cas");
}

TEST_CASE("storage commands") {
  const std::string fields = " flags 7 exptime 30 length 1 = v";
  CHECK(parse_one({Opcode::kSet, "k", "v", kSetExtras}) ==
        "set key k want-cas mode set" + fields.substr(0, fields.size()));
  CHECK(parse_one({Opcode::kAdd, "k", "v", kSetExtras}) == "add key k want-cas mode add" + fields);
  CHECK(parse_one({Opcode::kReplace, "k", "v", kSetExtras}) == "replace key k want-cas mode replace" + fields);
  CHECK(parse_one({Opcode::kAppend, "k", "v"}) == "append key k want-cas mode append flags 0 exptime 0 length 1 = v");
  CHECK(parse_one({Opcode::kPrependQ, "k", "v"}) ==
        "prepend key k want-cas mode prepend flags 0 exptime 0 length 1 quiet = v");
}

TEST_CASE("a CAS makes set, add and replace the same; append and prepend compare it") {
  const std::string fields = " flags 7 exptime 30 length 1 = v";
  for (const Opcode opcode : {Opcode::kSet, Opcode::kAdd, Opcode::kReplace}) {
    Packet packet{opcode, "k", "v", kSetExtras};
    packet.cas = 99;
    CHECK(parse_one(packet).ends_with(" key k cas=99 want-cas mode set" + fields));
  }
  Packet packet{Opcode::kAppend, "k", "v"};
  packet.cas = 99;
  CHECK(parse_one(packet) == "append key k cas=99 want-cas mode append flags 0 exptime 0 length 1 = v");
}

TEST_CASE("counting, deleting, flushing") {
  CHECK(parse_one({Opcode::kIncrement, "k", "", kCountExtras}) == "incr key k want-cas create=10@30 by 3");
  CHECK(parse_one({Opcode::kDecrementQ, "k", "", kCountExtras}) ==
        "decr key k want-cas decrement create=10@30 by 3 quiet");
  const std::string existing = big(uint64_t{3}) + big(uint64_t{10}) + big(binary::kDoNotCreate);
  CHECK(parse_one({Opcode::kIncrement, "k", "", existing}) == "incr key k want-cas by 3");
  CHECK(parse_one({Opcode::kDelete, "k"}) == "delete key k");
  Packet compared{Opcode::kDeleteQ, "k"};
  compared.cas = 5;
  CHECK(parse_one(compared) == "delete key k cas=5 quiet");
  CHECK(parse_one({Opcode::kFlush}) == "flush_all exptime 0");
  CHECK(parse_one({Opcode::kFlushQ, "", "", kTouchExtras}) == "flush_all exptime 60 quiet");
}

TEST_CASE("what needs no store") {
  CHECK(parse_one({Opcode::kNoop}) == "noop");
  CHECK(parse_one({Opcode::kVersion}) == "version");
  CHECK(parse_one({Opcode::kVerbosity, "", "", big(uint32_t{2})}) == "verbosity 2");
  CHECK(parse_one({Opcode::kStat}) == "stats 0");
  CHECK(parse_one({Opcode::kStat, "detail dump"}) == "stats 2 detail dump");
  CHECK(parse_one({Opcode::kSaslMechanisms}) == "sasl mechanisms");
  CHECK(parse_one({Opcode::kSaslAuth, "PLAIN", "secret"}) == "sasl start key PLAIN = secret");
  CHECK(parse_one({Opcode::kSaslStep, "PLAIN", "secret"}) == "sasl step key PLAIN = secret");
}

TEST_CASE("nothing comes after a quit") {
  const std::string get = Packet{Opcode::kGet, "k"}.bytes();
  CHECK(parse(Packet{Opcode::kQuit}.bytes() + get) == Events{"quit", "close"});
  CHECK(parse(Packet{Opcode::kQuitQ}.bytes() + get) == Events{"quit quiet", "close"});
}

TEST_CASE("an unknown opcode is answered, and its body dropped") {
  const std::string noop = Packet{Opcode::kNoop}.bytes();
  const Packet unknown{static_cast<Opcode>(0x55), "key", "value", "extra"};
  CHECK(parse(unknown.bytes() + noop) == Events{"status 129 to 85 opaque abcd: Unknown command", "noop"});
}

TEST_CASE("lengths that are not the opcode's are answered, and end the connection") {
  const auto ends = [](const Packet& packet, const std::string& status, const std::string& text) {
    const Events events = parse(packet.bytes() + Packet{Opcode::kNoop}.bytes());
    REQUIRE(events.size() == 1);
    CHECK(events[0] == "close status " + status + " to " + std::to_string(static_cast<int>(packet.opcode)) +
                           " opaque abcd: " + text);
  };
  const std::string invalid = "Invalid arguments";
  ends({Opcode::kGet}, "4", invalid);
  ends({Opcode::kGet, "k", "value"}, "4", invalid);
  ends({Opcode::kGet, "k", "", "extra"}, "4", invalid);
  ends({Opcode::kGet, std::string(251, 'k')}, "4", invalid);
  ends({Opcode::kSet, "", "v", kSetExtras}, "4", invalid);
  ends({Opcode::kSet, "k", "v", kTouchExtras}, "4", invalid);
  ends({Opcode::kIncrement, "k", "", kTouchExtras}, "4", invalid);
  ends({Opcode::kNoop, "k"}, "4", invalid);
  ends({Opcode::kFlush, "", "", "abc"}, "4", invalid);
  ends({Opcode::kTouch, "k"}, "4", invalid);
  Packet contradicting{Opcode::kGet, "key"};
  contradicting.body_length = 2;
  ends(contradicting, "129", "Unknown command");
}

TEST_CASE("another magic ends the connection without a word") {
  std::string bytes = Packet{Opcode::kNoop}.bytes();
  bytes[0] = '\x81';
  CHECK(parse(bytes) == Events{"close"});
  CHECK(parse(Packet{Opcode::kNoop}.bytes() + "get a\r\n") == Events{"noop", "close"});
}

TEST_CASE("the longest key, and keys and values of any bytes") {
  const std::string key(250, '\0');
  CHECK(parse_one({Opcode::kGet, key}) == "get key " + key + " want-cas");
  const std::string value("\r\n\0\x80", 4);
  CHECK(parse_one({Opcode::kSet, " \r\n", value, kSetExtras}) ==
        "set key  \r\n want-cas mode set flags 7 exptime 30 length 4 = " + value);
}

TEST_CASE("a long value is streamed, may be swallowed, and has no terminator") {
  const std::string bytes = Packet{Opcode::kSet, "k", "hello", kSetExtras}.bytes() + Packet{Opcode::kNoop}.bytes();
  CHECK(parse(bytes, Limits{4, 8192}) ==
        Events{"set key k want-cas mode set flags 7 exptime 30 length 5 streamed", "part hello", "value ok", "noop"});
  CHECK(Log(Limits{4, 8192}, true).feed(bytes).events() ==
        Events{"set key k want-cas mode set flags 7 exptime 30 length 5 streamed", "noop"});
}

TEST_CASE("before the client has said who it is, only SASL and the version are for it") {
  for (const Opcode opcode : {Opcode::kSaslMechanisms, Opcode::kVersion}) {
    BinaryParser parser{Limits{}};
    parser.require_authentication(true);
    Command command;
    CHECK(parser.next(Packet{opcode}.bytes(), command).event == Event::kCommand);
  }
  BinaryParser parser{Limits{}};
  parser.require_authentication(true);
  Command command;
  const std::string bytes = Packet{Opcode::kGet, "k"}.bytes();
  CHECK(parser.next(bytes, command).event == Event::kClose);
  CHECK(command.error.ends_with("Auth failure."));
}

TEST_CASE("it does not matter where the bytes are cut") {
  std::string stream;
  for (const Packet& packet :
       {Packet{Opcode::kGet, "k"}, Packet{Opcode::kSetQ, "k", "hello", kSetExtras}, Packet{Opcode::kNoop},
        Packet{static_cast<Opcode>(0x77), "k", "v"}, Packet{Opcode::kIncrement, "k", "", kCountExtras},
        Packet{Opcode::kStat, "items"}, Packet{Opcode::kAppend, "k", ""}}) {
    stream += packet.bytes();
  }
  stream += Packet{Opcode::kGet, std::string(300, 'k')}.bytes();  // it says goodbye with its last byte, not before
  for (const Limits limits : {Limits{}, Limits{2, 8192}}) {
    const Events whole = parse(stream, limits);
    for (size_t cut = 0; cut <= stream.size(); ++cut) {
      Log log(limits);
      log.feed(std::string_view(stream).substr(0, cut)).feed(std::string_view(stream).substr(cut));
      CHECK_MESSAGE(log.events() == whole, cut);
      CHECK(log.views_in_input());
    }
    for (const size_t piece : {size_t{1}, size_t{2}, size_t{3}}) {
      CHECK(Log(limits).feed_by(piece, stream).events() == whole);
    }
  }
}
