#include "proxy/commands/keys.h"

#include <array>

#include "memcache/reply.h"
#include "memcache/translate.h"
#include "pool/gutter/stand_in.h"

namespace egret::proxy {

using memcache::CommandKind;
using op::Op;
using op::OpCode;
using op::Result;
using op::ResultCode;

namespace {

constexpr RequestKind kind_of(CommandKind kind) {
  switch (kind) {
    case CommandKind::kGet:
    case CommandKind::kGets:
    case CommandKind::kMetaGet:
      return RequestKind::kGet;
    case CommandKind::kGat:
    case CommandKind::kGats:
    case CommandKind::kTouch:
      return RequestKind::kTouch;
    case CommandKind::kDelete:
    case CommandKind::kMetaDelete:
      return RequestKind::kDelete;
    case CommandKind::kIncr:
    case CommandKind::kDecr:
    case CommandKind::kMetaArith:
      return RequestKind::kArith;
    default:
      return memcache::is_storage(kind) ? RequestKind::kSet : RequestKind::kOther;
  }
}

constexpr auto kRequestKindOf = [] {
  std::array<uint8_t, static_cast<size_t>(CommandKind::kQuit) + 1> kinds{};
  for (size_t i = 0; i < kinds.size(); ++i) kinds[i] = static_cast<uint8_t>(kind_of(static_cast<CommandKind>(i)));
  return kinds;
}();

// Whether the op must wait for an earlier unfinished get of the same key.
bool changes_something(const Op& op) {
  return op.code != OpCode::kGet || (op.options & ~op::kReadOnlyGetOptions) != 0;
}

// Whether what the op does depends on what is there: then the key's value must be where the op goes. A get that changes
// nothing where it finds nothing is asked again after a miss instead.
bool needs_item(const Op& op, bool is_get) {
  if (is_get) return (op.options & op::kVivify) != 0;
  return op.code != OpCode::kSet || op.mode != op::SetMode::kSet || (op.options & op::kCompareCas) != 0;
}

// While the values of keys that moved are brought to their owners: whether the command waits for its key's.
[[gnu::noinline, gnu::cold]] bool waits_for_pull(ClientContext& client, const KeyOp& what, bool is_get) {
  if (client.was_held && client.is_pulled) return false;
  return needs_item(what.op, is_get) &&
         client.worker.pulls.pull(client.command.key, what.route, &client.pull_waiter, true);
}

// If somebody watches, a change must answer more metadata than its client asks for; its effect stays the same.
void want_what_watchers_see(const AdminState& admin, Op& op) {
  if (!admin.observes_items()) [[likely]]
    return;
  if (op.code != OpCode::kSet && op.code != OpCode::kDelete) return;
  const bool is_classic_set = op.code == OpCode::kSet && (op.options & op::kWantMeta) == 0;
  op.options |= op::kWantMeta | (is_classic_set ? op::kAsClassic : 0);
}

// `expected`: bytes of its result, if it is as long as others were.
void push(ClientContext& client, const Op& op, Reply* reply, size_t expected) {
  reply->keep_key(op.key);
  reply->is_read = op.code == OpCode::kGet && client.command.kind != CommandKind::kTouch;
  if (reply->is_key) reply->expected = static_cast<uint32_t>(expected);
  client.replies.push(reply);
}

// Without a slot, if the worker has the lane's partition itself. False: it is to be appended.
[[gnu::noinline]] bool execute(ClientContext& client, const KeyOp& what, rpc::ClientLane& lane, Reply* reply) {
  Result result;
  op::LoanRef loan;
  if (!rpc::execute(lane, what.op, result, loan)) return false;
  push(client, what.op, reply, 0);
  reply->on_result(result);
  return true;
}

// The key's owner is absent: the op goes to one that stands in for it.
[[gnu::cold]] void send_to_gutter(ClientContext& client, const pool::Route& route, Op& op) {
  pool::stand_in(op, route.tag, client.config->gutter.ttl_s);
  client.worker.stats.gutter_ops.add();
}

}  // namespace

void count_request(ClientContext& client) {
  client.worker.stats.requests.count[kRequestKindOf[static_cast<size_t>(client.command.kind)]].add();
}

Outcome get_key(ClientContext& client) {
  const memcache::Command& command = client.command;
  const pool::Route route = client.worker.pool.route(command.key);
  const bool is_classic = command.dialect == memcache::Dialect::kClassic;
  if (route.session == nullptr) {
    if (route.waits) return client.wait_for_return();
    if (is_classic) {
      client.replies.push_failure(memcache::kBackendUnavailable, client.command_number);
    } else {
      count_request(client);
      answer(client, ResultCode::kSessionLost);
    }
    return Outcome::kDone;
  }
  KeyOp ask{route, memcache::to_op(command)};  // made in place: a copy of fields just written stalls
  Op& op = ask.op;
  op.hash = route.hash;
  if (route.tag != 0) [[unlikely]]
    send_to_gutter(client, route, op);
  if (client.replies.must_wait(route.hash, changes_something(op))) return Outcome::kWaitForAnswer;
  const bool is_warm = client.worker.pulls.is_open();
  if (is_warm && waits_for_pull(client, ask, true)) [[unlikely]]
    return Outcome::kWaitForPull;
  // A touch may make the item expire before the chunks of its value are fetched: pin it.
  if (op.options & op::kTouch) op.options |= op::kPin;
  Reply* reply = new_reply(client, op.options);
  reply->is_key = true;
  reply->get_exptime = op.exptime;
  reply->owner = op.owner;
  if (is_classic) {
    reply->command = client.command_number;
    reply->asked_ns = 0;  // END sets it
  }
  reply->hash = route.hash;
  reply->session = rpc::SessionRef(*route.session);
  if (is_warm && route.tag == 0) [[unlikely]]
    reply->may_miss = std::make_unique<Op>(op);
  const Outcome outcome = append(client, ask, reply);
  if (!is_classic && outcome == Outcome::kDone) count_request(client);
  return outcome;
}

void end_keys(ClientContext& client) {
  client.replies.push_end(client.command_number);
  if (++client.command_number == 0) client.command_number = 1;
  count_request(client);
}

std::optional<KeyOp> change_of(ClientContext& client, Outcome& outcome) {
  KeyOp change{client.worker.pool.route(client.command.key), {}};
  if (change.route.waits) {
    outcome = client.wait_for_return();
    return std::nullopt;
  }
  if (change.route.session == nullptr) {
    answer(client, ResultCode::kSessionLost);
    outcome = Outcome::kDone;
    return std::nullopt;
  }
  change.op = memcache::to_op(client.command);
  change.op.hash = change.route.hash;
  if (change.route.tag != 0) [[unlikely]]
    send_to_gutter(client, change.route, change.op);
  if (client.replies.must_wait(change.route.hash, changes_something(change.op))) {
    outcome = Outcome::kWaitForAnswer;
    return std::nullopt;
  }
  if (client.worker.pulls.is_open() && waits_for_pull(client, change, false)) [[unlikely]] {
    outcome = Outcome::kWaitForPull;
    return std::nullopt;
  }
  want_what_watchers_see(client.worker.proxy.admin, change.op);
  return change;
}

Reply* new_reply(ClientContext& client, uint16_t options) {
  Reply* reply = client.replies.make();
  memcache::ask(client.command, options, reply->question);
  if (client.worker.proxy.admin.observes_items()) [[unlikely]]
    reply->observed = note(client.command);
  return reply;
}

Outcome append(ClientContext& client, const KeyOp& what, Reply* reply) {
  rpc::ClientLane& lane = what.route.session->lanes().of(what.route.hash);
  if (client.is_alone && execute(client, what, lane, reply)) return Outcome::kDone;
  size_t expected = rpc::gather(lane, what.op, reply);
  if (expected == 0 && rpc::answer_gathered(lane)) expected = rpc::gather(lane, what.op, reply);  // there is room again
  if (expected == 0) expected = lane.append(what.op, reply);
  if (expected == 0) {
    client.replies.discard(reply);
    return client.wait_for_credit(*what.route.session);
  }
  push(client, what.op, reply, expected);
  return Outcome::kDone;
}

void answer(ClientContext& client, ResultCode code) {
  const Op op = memcache::to_op(client.command);
  Reply* reply = new_reply(client, op.options);
  reply->key = client.command.key;
  Result result;
  result.code = code;
  client.replies.push_answered(reply, result);
}

}  // namespace egret::proxy
