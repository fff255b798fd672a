// What hosts say to each other: frames in parts of any size, bodies with checked fields, the token; and what is refused.
#include <string>

#include <doctest/doctest.h>

#include "bench_paradigms/session/bodies.h"
#include "bench_paradigms/session/frame.h"
#include "bench_paradigms/session/token.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)

namespace {

// How many fields an aggregate has: as many as it can be initialised with.
struct Anything {
  template <typename T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};
template <typename T, typename... Fields>
constexpr uint32_t fields_of() {
  if constexpr (requires { T{Fields{}..., Anything{}}; }) {
    return fields_of<T, Fields..., Anything>();
  } else {
    return sizeof...(Fields);
  }
}

Order an_order() {
  Order order;
  order.paradigm = "raw-read";
  order.plan = {.servers = 3, .clients = 7, .window = 9, .key_bytes = 20, .value_bytes = 100, .seed = 77};
  order.plan.tuning.as_paper = true;
  order.plan.tuning.load = 0.5;
  order.plan.tuning.checks = false;
  order.plan.tuning.reuse_delay_ns = 123;
  order.keys = 1000;
  order.workload = std::string("a\0b", 3);
  return order;
}

}  // namespace

TEST_CASE("frames come out as they went in, wherever the parts are cut") {
  const std::string large(100'000, 'x');
  const std::string bytes =
      to_bytes(FrameType::kOrder, "one") + to_bytes(FrameType::kAlive, "") + to_bytes(FrameType::kReport, large);
  for (const size_t part : {size_t{1}, size_t{7}, size_t{4096}, bytes.size()}) {
    CAPTURE(part);
    FrameReader reader;
    reader.trust();
    for (size_t at = 0; at < bytes.size(); at += part) REQUIRE(reader.add(std::string_view(bytes).substr(at, part)));
    REQUIRE(reader.has_next());
    const Frame first = reader.take();
    CHECK((first.type == FrameType::kOrder && first.body == "one"));
    CHECK(reader.take().type == FrameType::kAlive);
    CHECK(reader.take().body == large);
    CHECK_FALSE(reader.has_next());
  }
}

TEST_CASE("what is no frame of this version is refused, each with its reason") {
  const std::string good = to_bytes(FrameType::kHello, "abc");
  const auto refusal = [](std::string bytes) {
    FrameReader reader;
    return reader.add(bytes).message();
  };
  const auto with = [&good](size_t at, char byte) {
    std::string bytes = good;
    bytes[at] = byte;
    return bytes;
  };
  CHECK(refusal(good) == "");
  CHECK(refusal(std::string(16, '\0')) == "the other side is no egret-bench paradigms");
  CHECK(refusal("GET / HTTP/1.1\r\n\r\n") == "the other side is no egret-bench paradigms");
  CHECK(refusal(with(4, 9)) == "the other side is an egret-bench of another version");
  CHECK(refusal(with(6, 0)) == "the other side sends nonsense");
  CHECK(refusal(with(6, 99)) == "the other side sends nonsense");
  CHECK(refusal(with(15, 1)) == "the other side sends nonsense");  // 2^56 bytes to come
}

TEST_CASE("who has not given the token yet cannot announce a large frame") {
  FrameReader reader;
  CHECK(reader.add(to_bytes(FrameType::kHello, std::string(4096, 'x'))));
  CHECK_FALSE(reader.add(to_bytes(FrameType::kHello, std::string(4097, 'x'))));
}

TEST_CASE("fields end where their bytes end") {
  const std::string bytes = FieldWriter().put<uint32_t>(7).put_text("text").put(true).take();
  FieldReader all(bytes);
  CHECK(all.get<uint32_t>() == 7);
  CHECK(all.get_text() == "text");
  CHECK(all.get_bool());
  CHECK(all.is_done());
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    CAPTURE(cut);
    FieldReader part(std::string_view(bytes).substr(0, cut));
    (void)part.get<uint32_t>();
    (void)part.get_text();
    (void)part.get_bool();
    CHECK_FALSE(part.is_good());
  }
  const std::string huge = FieldWriter().put<uint64_t>(~uint64_t{0}).take();
  FieldReader beyond(huge);
  CHECK(beyond.get_text().empty());
  CHECK_FALSE(beyond.is_good());
  const std::string two = FieldWriter().put<uint8_t>(2).take();
  FieldReader no_bool(two);
  (void)no_bool.get_bool();
  CHECK_FALSE(no_bool.is_good());
}

TEST_CASE("an order arrives as it was given, every field of its tuning with it") {
  const Order order = an_order();
  const auto read = read_order(to_body(order));
  REQUIRE(read);
  CHECK(read.value().paradigm == order.paradigm);
  CHECK(read.value().plan.servers == 3);
  CHECK(read.value().plan.clients == 7);
  CHECK(read.value().plan.window == 9);
  CHECK(read.value().plan.key_bytes == 20);
  CHECK(read.value().plan.value_bytes == 100);
  CHECK(read.value().plan.seed == 77);
  CHECK(read.value().plan.tuning.as_paper);
  CHECK(read.value().plan.tuning.load == 0.5);
  CHECK_FALSE(read.value().plan.tuning.checks);
  CHECK(read.value().plan.tuning.reuse_delay_ns == 123);
  CHECK(read.value().keys == 1000);
  CHECK(read.value().workload == order.workload);
  // A field that is new in Tuning has to be added to visit_tuning in session/bodies.cc.
  CHECK(tuning_fields() == fields_of<Tuning>());
}

TEST_CASE("orders that no host could carry out are refused, and so is every cut one") {
  const std::string body = to_body(an_order());
  for (size_t cut = 0; cut < body.size(); ++cut) CHECK_FALSE(read_order(std::string_view(body).substr(0, cut)));
  CHECK_FALSE(read_order(body + "x"));
  const auto is_taken = [](const auto& change) {
    Order order = an_order();
    change(order);
    return read_order(to_body(order)).is_ok();
  };
  CHECK(is_taken([](Order&) {}));
  CHECK_FALSE(is_taken([](Order& order) { order.plan.servers = 0; }));
  CHECK_FALSE(is_taken([](Order& order) { order.plan.clients = 1'000'000; }));
  CHECK_FALSE(is_taken([](Order& order) { order.plan.window = 0; }));
  CHECK_FALSE(is_taken([](Order& order) { order.plan.value_bytes = 1u << 30; }));
  CHECK_FALSE(is_taken([](Order& order) { order.plan.key_bytes = 2; }));
  CHECK_FALSE(is_taken([](Order& order) { order.keys = 0; }));
  CHECK_FALSE(is_taken([](Order& order) {
    order.plan.key_bytes = 4096;
    order.keys = 1u << 27;
  }));
}

TEST_CASE("hello, welcome and what nodes bring arrive as they were given; cut ones are refused") {
  Hello hello{"token", own_build(), {"rxe0", 4}, {}};
  hello.capabilities.has_uc = true;
  hello.capabilities.mtu = 2048;
  const std::string said = to_body(hello);
  const auto heard = read_hello(said);
  REQUIRE(heard);
  CHECK(heard.value().token == "token");
  CHECK(heard.value().build == own_build());
  CHECK(heard.value().host.processors == 4);
  CHECK(heard.value().capabilities.has_uc);
  CHECK(heard.value().capabilities.mtu == 2048);
  for (size_t cut = 0; cut < said.size(); ++cut) CHECK_FALSE(read_hello(std::string_view(said).substr(0, cut)));

  const Welcome welcome{2, {{"a", 1}, {"b", 2}, {"c", 3}}, hello.capabilities};
  REQUIRE(read_welcome(to_body(welcome)));
  CHECK(read_welcome(to_body(welcome)).value().hosts[2].device == "c");
  CHECK_FALSE(read_welcome(to_body(Welcome{3, {{"a", 1}, {"b", 2}, {"c", 3}}, {}})));  // there is no host 3

  StepDone done{Step::kPrepare, {{.node = 5, .error = "", .address = {}, .notices = {"", "xyz"}, .figures = "f"}}};
  done.nodes[0].address.gid[15] = 9;
  done.nodes[0].address.lid = 3;
  const std::string brought = to_body(done);
  const auto taken = read_done(brought);
  REQUIRE(taken);
  CHECK(taken.value().nodes[0].node == 5);
  CHECK(taken.value().nodes[0].notices[1] == "xyz");
  CHECK(taken.value().nodes[0].address.gid[15] == 9);
  CHECK(taken.value().nodes[0].address.lid == 3);
  CHECK(taken.value().nodes[0].figures == "f");
  for (size_t cut = 0; cut < brought.size(); ++cut) CHECK_FALSE(read_done(std::string_view(brought).substr(0, cut)));
}

TEST_CASE("devices together can do what each can") {
  Capabilities one{.has_atomics = true,
                   .has_uc = true,
                   .has_ud = true,
                   .inline_bytes = 256,
                   .mtu = 4096,
                   .read_depth = 16,
                   .device = "a"};
  Capabilities other{
      .has_uc = true, .is_emulated = true, .inline_bytes = 64, .mtu = 1024, .read_depth = 128, .device = "b"};
  const Capabilities both = merge(one, other);
  CHECK_FALSE(both.has_atomics);
  CHECK(both.has_uc);
  CHECK_FALSE(both.has_ud);
  CHECK(both.is_emulated);
  CHECK(both.inline_bytes == 64);
  CHECK(both.mtu == 1024);
  CHECK(both.read_depth == 16);
  CHECK(both.device == "a or b");
}

TEST_CASE("a token is 128 bits of chance, and only itself") {
  const std::string token = make_token();
  CHECK(token.size() == 32);
  CHECK(token.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(make_token() != token);
  CHECK(is_same_token(token, token));
  CHECK_FALSE(is_same_token("", token));
  CHECK_FALSE(is_same_token(token.substr(1), token));
  CHECK_FALSE(is_same_token(token + "0", token));
  for (size_t i = 0; i < token.size(); ++i) {
    std::string other = token;
    other[i] = other[i] == '0' ? '1' : '0';
    CHECK_FALSE(is_same_token(other, token));
  }
}
