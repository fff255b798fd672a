// One call, one answer.
#include "client/api/calls.h"

#include "client/api/boundary.h"
#include "client/egret.h"

namespace egret::client {

static_assert(EGRET_GET == static_cast<int>(op::OpCode::kGet) && EGRET_SET == static_cast<int>(op::OpCode::kSet) &&
              EGRET_DELETE == static_cast<int>(op::OpCode::kDelete) &&
              EGRET_ARITH == static_cast<int>(op::OpCode::kArith) && EGRET_PING == static_cast<int>(op::OpCode::kPing));
static_assert(EGRET_MODE_SET == static_cast<int>(op::SetMode::kSet) &&
              EGRET_MODE_PREPEND == static_cast<int>(op::SetMode::kPrepend));
// The library's flags are the wire's.
constexpr bool is_same(uint32_t flag, op::OpOptions option) {
  return flag == option;
}
static_assert(is_same(EGRET_F_COMPARE_CAS, op::kCompareCas) && is_same(EGRET_F_TOUCH, op::kTouch) &&
              is_same(EGRET_F_NO_VALUE, op::kNoValue) && is_same(EGRET_F_WANT_CAS, op::kWantCas) &&
              is_same(EGRET_F_DECREMENT, op::kDecrement) && is_same(EGRET_F_TOUCH_FIRST, op::kTouchFirst) &&
              is_same(EGRET_F_CREATE, op::kCreate) && is_same(EGRET_F_EXPLICIT_CAS, op::kExplicitCas) &&
              is_same(EGRET_F_VIVIFY, op::kVivify) && is_same(EGRET_F_RECACHE, op::kRecache) &&
              is_same(EGRET_F_INVALIDATE, op::kInvalidate) && is_same(EGRET_F_DROP_VALUE, op::kDropValue) &&
              is_same(EGRET_F_WANT_META, op::kWantMeta) && is_same(EGRET_F_PEEK, op::kPeek) &&
              is_same(EGRET_F_NEW_TTL, op::kNewTtl) && is_same(EGRET_F_NO_BUMP, op::kNoBump) &&
              is_same(EGRET_F_AS_CLASSIC, op::kAsClassic));

namespace {
// kPin is the library's own affair.
constexpr uint32_t kKnownFlags = 0xffffu & ~uint32_t{op::kPin};
constexpr uint32_t kMostOpSize = 1024;
}  // namespace

int because(egret_client& client, int code, const char* why) {
  client.why = why;
  return code;
}

int because_of_trouble(egret_client& client, int code) {
  if (code < 0) {
    client.why = egret_text(code);
    const bool is_of_backend = code == EGRET_E_UNAVAILABLE || code == EGRET_E_UNKNOWN;
    if (is_of_backend && !client.engine->trouble().empty()) client.why += ": " + client.engine->trouble();
  }
  return code;
}

bool is_valid_key(const char* key, size_t key_length) {
  return key != nullptr && key_length >= 1 && key_length <= op::kMaxKeyLength;
}

bool OpArray::is_valid(const egret_op* first) {
  return first != nullptr && first->size >= sizeof(egret_op) && first->size <= kMostOpSize && first->size % 8 == 0;
}

int to_op(const egret_op& from, op::Op& op, const char*& why) {
  const auto wrong = [&](const char* what) {
    why = what;
    return EGRET_E_ARGUMENT;
  };
  if ((from.flags & ~(kKnownFlags | EGRET_F_STAYS)) != 0) return wrong("an unknown flag");
  const bool is_ping = from.code == EGRET_PING;
  const bool is_known = (from.code >= EGRET_GET && from.code <= EGRET_ARITH) || is_ping;
  if (!is_known) return wrong("an unknown op code");
  if (from.mode > EGRET_MODE_PREPEND) return wrong("an unknown mode");
  if (is_ping ? from.key_length != 0 : !is_valid_key(from.key, from.key_length))
    return wrong("a key has 1 to 250 bytes");
  if (from.code == EGRET_SET && (from.value == nullptr ? from.value_length != 0 : from.value_length > UINT32_MAX)) {
    return wrong("a value without bytes, or of 4 GiB and more");
  }
  op.code = static_cast<op::OpCode>(from.code);
  op.mode = static_cast<op::SetMode>(from.mode);
  op.options = static_cast<uint16_t>(from.flags);
  op.client_flags = from.client_flags;
  op.exptime = from.exptime;
  op.vivify_exptime = from.vivify_exptime;
  op.recache_below = from.recache_below;
  op.cas = from.cas;
  op.new_cas = from.new_cas;
  op.delta = from.delta;
  op.initial = from.initial;
  if (!is_ping) op.key = {from.key, from.key_length};
  if (from.code == EGRET_SET && from.value_length > 0) {
    op.value = {static_cast<const char*>(from.value), from.value_length};
  }
  return EGRET_OK;
}

namespace {

// One op whose answer goes to `result`, which may be null.
template <typename Fill>
int run_one(egret_client* client, const char* key, size_t key_length, egret_result* result, Fill fill,
            uint64_t* number = nullptr) {
  return enter(client, [&](egret_client& c) {
    if (!is_valid_key(key, key_length)) return because(c, EGRET_E_ARGUMENT, "a key has 1 to 250 bytes");
    if (!ResultArray::is_valid(result)) return because(c, EGRET_E_ARGUMENT, "a result without its size");
    Batch batch(result != nullptr ? ResultArray(result) : ResultArray(), *c.buffers);
    run_batch(c, 1, batch, [&](size_t, op::Op& op, uint64_t&) {
      op.key = {key, key_length};
      fill(op);
      return EGRET_OK;
    });
    if (number != nullptr && batch.last_code() == EGRET_NUMBER) *number = batch.last_number();
    return because_of_trouble(c, batch.last_code());
  });
}

int arithmetic(egret_client* client, const char* key, size_t key_length, uint64_t by, uint64_t* now, uint16_t options) {
  return run_one(
      client, key, key_length, nullptr,
      [&](op::Op& op) {
        op.code = op::OpCode::kArith;
        op.options = options;
        op.delta = by;
      },
      now);
}

}  // namespace
}  // namespace egret::client

using namespace egret::client;
using egret::op::Op;
using egret::op::OpCode;
using egret::op::SetMode;

extern "C" {

int egret_get(egret_client* client, const char* key, size_t key_length, egret_result* result) {
  return run_one(client, key, key_length, result, [](Op& op) {
    op.code = OpCode::kGet;
    op.options = egret::op::kWantCas;
  });
}

int egret_get_into(egret_client* client, const char* key, size_t key_length, void* to, size_t room, size_t* length) {
  return enter(client, [&](egret_client& c) {
    if (!is_valid_key(key, key_length)) return because(c, EGRET_E_ARGUMENT, "a key has 1 to 250 bytes");
    if (to == nullptr && room > 0) return because(c, EGRET_E_ARGUMENT, "no memory for the value");
    CopySink sink(to, room);
    Op op;
    op.code = OpCode::kGet;
    op.key = {key, key_length};
    const uint64_t deadline_ns = c.engine->clock().now_ns() + c.engine->op_timeout_ns();
    Taken taken = c.engine->submit(op, sink, nullptr, 0, true);
    while (is_for_later(taken) && c.engine->wait_for_room(deadline_ns)) {
      taken = c.engine->submit(op, sink, nullptr, 0, true);
    }
    if (taken != Taken::kYes) return because_of_trouble(c, EGRET_E_UNAVAILABLE);
    c.engine->wait([&] { return sink.is_over; }, UINT64_MAX);
    if (length != nullptr) *length = sink.length;
    return because_of_trouble(c, sink.code);
  });
}

int egret_gat(egret_client* client, const char* key, size_t key_length, int64_t exptime, egret_result* result) {
  return run_one(client, key, key_length, result, [&](Op& op) {
    op.code = OpCode::kGet;
    op.options = egret::op::kTouch | egret::op::kWantCas;
    op.exptime = exptime;
  });
}

int egret_set(egret_client* client, const char* key, size_t key_length, const void* value, size_t value_length,
              int64_t exptime, uint32_t client_flags) {
  return egret_store(client, EGRET_MODE_SET, key, key_length, value, value_length, exptime, client_flags, 0, nullptr);
}

int egret_store(egret_client* client, int mode, const char* key, size_t key_length, const void* value,
                size_t value_length, int64_t exptime, uint32_t client_flags, uint64_t cas, egret_result* result) {
  return enter(client, [&](egret_client& c) {
    if (!ResultArray::is_valid(result)) return because(c, EGRET_E_ARGUMENT, "a result without its size");
    if (mode < EGRET_MODE_SET || mode > EGRET_MODE_PREPEND) return because(c, EGRET_E_ARGUMENT, "an unknown mode");
    egret_op given{};
    given.code = EGRET_SET;
    given.mode = static_cast<uint8_t>(mode);
    given.flags =
        (cas != 0 ? uint32_t{EGRET_F_COMPARE_CAS} : 0u) | (result != nullptr ? uint32_t{EGRET_F_WANT_CAS} : 0u);
    given.key = key;
    given.key_length = key_length;
    given.value = value;
    given.value_length = value_length;
    given.exptime = exptime;
    given.client_flags = client_flags;
    given.cas = cas;
    Batch batch(result != nullptr ? ResultArray(result) : ResultArray(), *c.buffers);
    const char* why = nullptr;
    run_batch(c, 1, batch, [&](size_t, Op& op, uint64_t&) { return to_op(given, op, why); });
    if (why != nullptr) return because(c, EGRET_E_ARGUMENT, why);
    return because_of_trouble(c, batch.last_code());
  });
}

int egret_delete(egret_client* client, const char* key, size_t key_length, uint64_t cas) {
  return run_one(client, key, key_length, nullptr, [&](Op& op) {
    op.code = OpCode::kDelete;
    op.options = cas != 0 ? egret::op::kCompareCas : 0;
    op.cas = cas;
  });
}

int egret_incr(egret_client* client, const char* key, size_t key_length, uint64_t by, uint64_t* now) {
  return arithmetic(client, key, key_length, by, now, 0);
}

int egret_decr(egret_client* client, const char* key, size_t key_length, uint64_t by, uint64_t* now) {
  return arithmetic(client, key, key_length, by, now, egret::op::kDecrement);
}

int egret_touch(egret_client* client, const char* key, size_t key_length, int64_t exptime) {
  return run_one(client, key, key_length, nullptr, [&](Op& op) {
    op.code = OpCode::kGet;
    op.options = egret::op::kTouch | egret::op::kNoValue;
    op.exptime = exptime;
  });
}

int egret_mget(egret_client* client, const char* const* keys, const size_t* key_lengths, size_t count,
               egret_result* results) {
  return enter(client, [&](egret_client& c) {
    if (count == 0) return 0;
    if (keys == nullptr || key_lengths == nullptr || count > INT32_MAX || results == nullptr ||
        !ResultArray::is_valid(results)) {
      return because(c, EGRET_E_ARGUMENT, "an array that is missing, or a result without its size");
    }
    Batch batch(ResultArray(results), *c.buffers);
    run_batch(c, count, batch, [&](size_t i, Op& op, uint64_t&) {
      if (!is_valid_key(keys[i], key_lengths[i])) return because(c, EGRET_E_ARGUMENT, "a key has 1 to 250 bytes");
      op.code = OpCode::kGet;
      op.options = egret::op::kWantCas;
      op.key = {keys[i], key_lengths[i]};
      return int{EGRET_OK};
    });
    because_of_trouble(c, batch.first_error());
    return batch.errors() == count ? batch.first_error() : static_cast<int>(batch.hits());
  });
}

int egret_execute(egret_client* client, const egret_op* ops, size_t count, egret_result* results) {
  return enter(client, [&](egret_client& c) {
    if (count == 0) return int{EGRET_OK};
    if (!OpArray::is_valid(ops) || results == nullptr || !ResultArray::is_valid(results)) {
      return because(c, EGRET_E_ARGUMENT, "an array that is missing, or an op or a result without its size");
    }
    const OpArray array(ops);
    Batch batch(ResultArray(results), *c.buffers);
    run_batch(c, count, batch, [&](size_t i, Op& op, uint64_t& tag) {
      const egret_op& given = array[i];
      tag = given.tag;
      const char* why = nullptr;
      const int wrong = to_op(given, op, why);
      return wrong == EGRET_OK ? wrong : because(c, wrong, why);
    });
    return batch.first_error() == 0 ? int{EGRET_OK} : batch.first_error();
  });
}

int egret_flush_all(egret_client* client, int64_t delay) {
  return enter(client, [&](egret_client& c) {
    Engine& engine = *c.engine;
    engine.wait([&] { return engine.pending() == 0; }, UINT64_MAX);  // op_timeout ends it
    Op op;
    op.code = OpCode::kFlush;
    op.exptime = delay;
    Batch batch(ResultArray(), *c.buffers);
    uint32_t count = 0, missed = 0;
    const uint64_t deadline_ns = engine.clock().now_ns() + engine.op_timeout_ns();
    Taken taken = engine.submit_to_all(op, batch, count, missed);
    while (is_for_later(taken) && engine.wait_for_room(deadline_ns)) {
      taken = engine.submit_to_all(op, batch, count, missed);
    }
    for (uint32_t i = 0; i < count; ++i) batch.expect();
    engine.wait([&] { return batch.is_over(); }, UINT64_MAX);
    if (batch.first_error() != 0) return because_of_trouble(c, batch.first_error());
    return because_of_trouble(c, missed > 0 || count == 0 ? EGRET_E_UNAVAILABLE : EGRET_OK);
  });
}

}  // extern "C"
