#include "proxy/commands/uploads.h"

#include <cstring>
#include <utility>

#include "memcache/reply.h"
#include "op/item_size.h"
#include "pool/warm/upload_commit.h"

namespace egret::proxy {

using op::ResultCode;

Uploads::~Uploads() {
  if (upload_ != nullptr) forget();
}

bool Uploads::begin_direct(op::PartRoom& room) {
  if (collected_ != nullptr || is_too_large_ || gives_up() || upload_->left() == 0) return false;
  return upload_->begin_part(rpc::LargeSet::kMostRoom, room);
}

bool Uploads::is_worth_sending(size_t available) const {
  return collected_ != nullptr || is_given_up_ || upload_->is_worth_sending(available);
}

// The backend has answered nothing for op_timeout: the rest of the value is dropped, and the set fails, certainly not done.
bool Uploads::gives_up() {
  if (is_given_up_ || !is_stuck(*upload_)) return is_given_up_;
  upload_->lose_room();  // others may have it, or wait for it
  return is_given_up_ = true;
}

Outcome Uploads::begin() {
  if (upload_ == nullptr) {
    Outcome outcome{};
    std::optional<KeyOp> change = change_of(client_, outcome);
    if (!change) {
      if (outcome == Outcome::kDone) {  // answered already
        client_.parser.swallow_value();
        count_request(client_);
      }
      return outcome;
    }
    change->op.value = {};
    const uint64_t size =
        op::memcached_item_size(client_.command.key.size(), client_.command.client_flags, client_.command.value_length);
    start(*change);
    is_too_large_ = size > change->route.session->grant().item_size_max;
  }
  if (gives_up()) return Outcome::kDone;  // the value is dropped part by part
  if (is_too_large_) return refuse_too_large();
  if (upload_->enter()) return Outcome::kDone;
  if (collect()) {
    upload_->stop_waiting_for_room();
    return Outcome::kDone;
  }
  upload_->wait_for_room();
  return client_.wait_for_credit(upload_->session());
}

// Takes memory for the whole value, if large_value_memory has room.
bool Uploads::collect() {
  if (!client_.worker.memory.collected.take(client_.command.value_length)) return false;
  collected_ = std::make_unique_for_overwrite<char[]>(client_.command.value_length);
  return true;
}

void Uploads::give_collected() {
  if (std::exchange(collected_, nullptr) != nullptr) client_.worker.memory.collected.give(upload_->total());
}

void Uploads::start(const KeyOp& change) {
  upload_ = new rpc::LargeSet(*change.route.session, change.op, client_.command.value_length,
                              client_.worker.next_upload_id++);
  is_too_large_ = is_given_up_ = false;
  collected_size_ = collected_sent_ = 0;
  memcache::ask(client_.command, change.op.options, question_);
  observed_ = client_.worker.proxy.admin.observes_items() ? note(client_.command) : nullptr;
}

// Sends the command without the bytes of its value: the backend refuses and counts it, and (as memcached) removes the
// item that a plain set was to replace. Drops the client's bytes.
Outcome Uploads::refuse_too_large() {
  if (!upload_->announce()) return client_.wait_for_credit(upload_->session());
  if (const Outcome committed = commit(); committed != Outcome::kDone) return committed;
  client_.parser.swallow_value();
  count_request(client_);
  return Outcome::kDone;
}

Outcome Uploads::part() {
  std::string_view& bytes = client_.command.value;
  if (collected_ != nullptr) {
    std::memcpy(collected_.get() + collected_size_, bytes.data(), bytes.size());
    collected_size_ += static_cast<uint32_t>(bytes.size());
    return Outcome::kDone;
  }
  if (gives_up()) return Outcome::kDone;
  bytes.remove_prefix(upload_->send(bytes));
  return bytes.empty() ? Outcome::kDone : client_.wait_for_credit(upload_->session());
}

Outcome Uploads::end() {
  if (!client_.command.terminator_ok) {
    forget();
    if (!client_.command.noreply) client_.replies.push_text(memcache::kBadDataChunk);
    return Outcome::kDone;
  }
  if (gives_up()) return fail(ResultCode::kSessionLost);
  if (collected_ != nullptr) {
    if (!upload_->enter_whole()) return client_.wait_for_credit(upload_->session());
    const std::string_view rest(collected_.get() + collected_sent_, collected_size_ - collected_sent_);
    collected_sent_ += static_cast<uint32_t>(upload_->send(rest));
    if (collected_sent_ < collected_size_) return client_.wait_for_credit(upload_->session());
  }
  return commit();
}

Outcome Uploads::store_whole(const KeyOp& change) {
  start(change);
  return go_on_whole();
}

Outcome Uploads::go_on_whole() {
  if (gives_up()) return fail(ResultCode::kSessionLost);
  if (!upload_->enter_whole()) return client_.wait_for_credit(upload_->session());
  const Outcome sent = part();
  return sent == Outcome::kDone ? commit() : sent;
}

// Of an upload that was too slow and lost its room, the backend knows nothing any more. It answers the commit as a set
// that finds no memory, and (as memcached) drops the item that a plain set was to replace.
Outcome Uploads::commit() {
  if (upload_->failure() == ResultCode::kSessionLost) return fail(ResultCode::kSessionLost);
  Reply* reply = client_.replies.make();
  reply->question = question_;
  const pool::Route now = client_.worker.pool.route(upload_->key());
  if (now.session != nullptr && now.session != &upload_->session()) {  // ops on the key go there: not before its answer
    reply->hash = now.hash;
    reply->holds_key = true;
  }
  if (!pool::UploadCommit::send(client_.worker.pool, *upload_, reply)) {
    client_.replies.discard(reply);
    return client_.wait_for_credit(upload_->session());
  }
  reply->observed = std::move(observed_);
  client_.replies.push(reply);
  give_collected();
  std::exchange(upload_, nullptr)->release();
  return Outcome::kDone;
}

Outcome Uploads::fail(ResultCode code) {
  forget();
  op::Result result;
  result.code = code;
  Reply* reply = client_.replies.make();
  reply->question = question_;
  client_.replies.push_answered(reply, result);
  return Outcome::kDone;
}

void Uploads::forget() {
  give_collected();
  std::exchange(upload_, nullptr)->abandon();
  observed_.reset();
}

}  // namespace egret::proxy
