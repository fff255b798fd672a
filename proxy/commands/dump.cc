#include "proxy/commands/dump.h"

#include "memcache/reply.h"
#include "memcache/text/base64.h"
#include "memcache/uri.h"
#include "op/item_size.h"
#include "op/stats.h"

namespace egret::proxy {

using memcache::DumpForm;

namespace {

constexpr uint64_t kMaxItemsText = 2u << 20;  // bytes of a kItems dump, as in memcached

void append_meta(std::string& text, const op::Record& record) {
  const op::RecordHead& head = record.head;
  const auto number = [&](std::string_view name, uint64_t value) { text.append(name).append(std::to_string(value)); };
  memcache::append_uri_encoded(text.append("key="), record.key);
  if (head.exptime == 0) {
    text.append(" exp=-1");
  } else {
    number(" exp=", head.exptime);
  }
  number(" la=", head.last_access);
  number(" cas=", head.cas);
  text.append((head.marks & op::kFetched) != 0 ? " fetch=yes" : " fetch=no");
  number(" cls=", op::shown_class(head.size_class));
  number(" size=", op::memcached_item_size(record.key.size(), head.client_flags, head.value_length));
  number(" flags=", head.client_flags);
  text.append(" \n");
}

void append_command(std::string& text, std::string_view key) {
  text.append("mg ");
  if (memcache::is_binary_key(key)) {
    memcache::append_base64(text, key);
    text.append(" b");
  } else {
    text.append(key);
  }
  text.append("\r\n");
}

void append_item(std::string& text, const op::Record& record) {
  text.append("ITEM ").append(record.key);
  text.append(" [").append(std::to_string(record.head.value_length));
  text.append(" b; ").append(std::to_string(record.head.exptime)).append(" s]\r\n");
}

}  // namespace

Dump::Dump(const pool::Pool& pool, const memcache::AdminRequest& request, const OutputQueue& output, DumpOwner& owner)
    : output_(output), owner_(&owner), request_(request) {
  for (const auto& session : pool.serving()) sessions_.emplace_back(*session);
  some_failed_ = sessions_.empty();
  if (request.form != DumpForm::kItems) owner.on_dump_text(memcache::kOk);
  if (request.classes.count() != 1 || is_of_smallest()) return;
  for (uint32_t number = 1; number < memcache::kShownClasses; ++number) {
    if (request.classes[number]) only_class_ = static_cast<uint8_t>(number - 1);
  }
}

rpc::ClientSession* Dump::session() {
  while (backend_ < sessions_.size()) {
    rpc::ClientSession* const session = sessions_[backend_].get();
    const bool is_new = lane_ == 0 && cursor_ == 0;
    if (is_new) generation_ = session->lanes().generation();
    if (!session->is_open() || session->lanes().generation() != generation_) {
      some_failed_ = true;
    } else if (lane_ < session->lanes().count()) {
      return session;
    }
    next_backend();
  }
  return nullptr;
}

void Dump::next_backend() {
  sessions_[backend_++].reset();
  lane_ = 0;
  cursor_ = 0;
}

void Dump::go_on() {
  if (state_ != State::kResting || !output_.may_run_ahead()) return;
  rpc::ClientSession* const at = session();
  if (at == nullptr) return end();
  op::Op op;
  op.code = op::OpCode::kIterate;
  op.group = static_cast<uint8_t>(op::RecordSource::kItems);
  op.size_class = only_class_;
  op.version = cursor_;
  if (at->lanes()[lane_].append(op, this)) {
    state_ = State::kAsked;
  } else {
    state_ = State::kAwaitsCredit;
    at->credit().wait(this);
  }
}

void Dump::on_credit() {
  state_ = State::kResting;
  go_on();
}

void Dump::on_result(const op::Result& result) {
  state_ = State::kResting;
  if (owner_ == nullptr) {
    delete this;
    return;
  }
  if (result.code != op::ResultCode::kOk) {
    some_failed_ = true;
    is_forbidden_ |= result.code == op::ResultCode::kForbidden;
    next_backend();
  } else {
    if (!write_page(result.value)) return end();
    // A cursor that does not advance ends the walk, too.
    const bool is_over = result.version == op::kWalkOver || result.version <= cursor_;
    cursor_ = is_over ? 0 : result.version;
    if (is_over) ++lane_;
  }
  go_on();
}

// False: the dump has reached its limit of lines.
bool Dump::write_page(std::string_view records) {
  text_.clear();
  bool more = true;
  for (op::Record record; more && op::take_record(records, record);) {
    if (!is_wanted(record)) continue;
    write(record);
    if (request_.form != DumpForm::kItems) continue;
    ++items_;
    more = items_ != request_.most_items && written_ + text_.size() < kMaxItemsText;
  }
  written_ += text_.size();
  if (!text_.empty()) owner_->on_dump_text(text_);
  return more;
}

// Items of up to 96 bytes, which are memcached's class 1. Tools ask for that class, and no item of ours is in it.
bool Dump::is_of_smallest() const {
  return request_.form == DumpForm::kItems && request_.classes[1];
}

bool Dump::is_wanted(const op::Record& record) const {
  constexpr uint64_t kSmallest = 96;
  const auto is_smallest = [&] {
    const op::RecordHead& head = record.head;
    return op::memcached_item_size(record.key.size(), head.client_flags, head.value_length) <= kSmallest;
  };
  if (is_of_smallest()) return is_smallest() && !memcache::is_binary_key(record.key);
  if (request_.without_smallest && is_smallest()) return false;
  const uint32_t number = op::shown_class(record.head.size_class);
  const bool is_in_class = number < memcache::kShownClasses && request_.classes[number];
  return is_in_class && (request_.form != DumpForm::kItems || !memcache::is_binary_key(record.key));
}

void Dump::write(const op::Record& record) {
  switch (request_.form) {
    case DumpForm::kMeta:
      return append_meta(text_, record);
    case DumpForm::kCommands:
      return append_command(text_, record.key);
    case DumpForm::kItems:
      return append_item(text_, record);
  }
}

// If a backend could not be listed completely, ends with an error instead of END.
void Dump::end() {
  std::string_view last = request_.form == DumpForm::kCommands ? memcache::kMetaEnd : memcache::kEnd;
  if (some_failed_) last = is_forbidden_ ? memcache::kBackendForbids : memcache::kBackendUnavailable;
  owner_->on_dump_text(last);
  owner_->on_dump_over();
  delete this;
}

void Dump::abandon() {
  owner_ = nullptr;
  if (state_ == State::kAsked) return;  // on_result() will delete it
  if (state_ == State::kAwaitsCredit) sessions_[backend_]->credit().stop_waiting(this);
  delete this;
}

}  // namespace egret::proxy
