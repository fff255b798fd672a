#include "history.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace egret::sim {

using op::Result;
using op::ResultCode;

namespace {
constexpr uint32_t kCountBits = 20;
}  // namespace

const char* to_string(Kind kind) {
  static constexpr const char* kNames[] = {"get", "set", "add", "upload", "delete", "incr", "flush_all"};
  return kNames[static_cast<size_t>(kind)];
}

std::string key_text(uint32_t key) {
  return (is_number(key) ? "n" : "v") + std::to_string(key);
}

bool is_number(uint32_t key) {
  return key % 5 == 4;
}

uint64_t initial_of(const Request& request) {
  return request.id << kCountBits;
}

uint32_t flags_of(const Request& request) {
  return static_cast<uint32_t>(request.id * 7);
}

// "v3:12:" and so many bytes that only this request has in this order.
std::string value_of(const Request& request) {
  std::string value = key_text(request.key) + ":" + std::to_string(request.id) + ":";
  const size_t head = value.size();
  value.resize(std::max<size_t>(head, request.value_length));
  for (size_t i = head; i < value.size(); ++i) value[i] = static_cast<char>(request.id * 31 + i * 7 + (i >> 8));
  return value;
}

History::History(Registers registers, uint32_t keys, uint32_t backends)
    : registers_(registers), keys_(keys), backends_(backends), register_(size_t{keys} * backends) {
  if (registers != Registers::kPerKey && registers != Registers::kPerCopy) allow_fills();
  for (Register& each : register_) each.removals.push_back({.began = 0, .done = 0});  // empty at first
}

History::Register& History::at(uint32_t key, uint32_t backend) {
  return register_[size_t{key} * backends_ + (registers_ == Registers::kPerCopy ? backend : 0)];
}

// --- what happens --------------------------------------------------------------------------------------------------

Request& History::make(Kind kind, uint32_t key) {
  Request& request = requests_.emplace_back();
  request.id = requests_.size();
  request.kind = kind;
  request.key = key;
  return request;
}

History::Span History::span_of(const Request& request) const {
  return {.began = request.began,
          .done = kNever,
          .session = request.session,
          .place = request.place,
          .last = request.place,
          .backend = request.backend,
          .proxy = request.proxy};
}

void History::begin(Request& request, uint32_t backend, uint64_t session, uint64_t place) {
  request.backend = backend;
  request.session = session;
  request.place = place;
  request.began = ++now_;
  begin_effect(request);
}

// From its append on an op may take effect.
void History::begin_effect(Request& request) {
  Register& where = at(request.key, request.backend);
  switch (request.kind) {
    case Kind::kUpload:
      // One whose parts the backend has dropped is refused, and the old item is gone, as after any set that fails. If
      // the key has another owner by then, it is removed at both.
      where.removals.push_back(span_of(request));
      if (has_copies(request)) where.removals.back().last = kNever;
      for (uint32_t backend = 0; backend < backends_ && has_copies(request); ++backend) {
        if (backend != request.backend) at(request.key, backend).removals.push_back({.began = request.began});
      }
      [[fallthrough]];
    case Kind::kSet:
    case Kind::kAdd:
      where.writes[{request.id, 0}] = span_of(request);
      break;
    case Kind::kArith:
      ++where.additions;
      where.writes[{request.id, 0}] = span_of(request);
      break;
    case Kind::kDelete:
      where.removals.push_back(span_of(request));
      break;
    default:
      break;
  }
}

void History::begin_flush(Request& request, std::vector<uint32_t> backends) {
  request.began = ++now_;
  request.backends = std::move(backends);
  for (uint32_t key = 0; key < keys_; ++key) {
    for (const uint32_t backend : request.backends)
      at(key, backend).removals.push_back({.began = request.began, .backend = backend});
  }
}

void History::end_session(uint64_t session) {
  ++now_;
  for (Register& each : register_) {
    for (auto& [version, span] : each.writes) {
      if (span.session == session) span.done = std::min(span.done, now_);
    }
    for (Span& span : each.removals) {
      if (span.session == session) span.done = std::min(span.done, now_);
    }
  }
}

void History::end_process(uint32_t backend, bool is_empty) {
  ++now_;
  const Span span{.began = now_, .done = now_};
  for (uint32_t key = 0; key < keys_; ++key) {
    Register& where = at(key, backend);
    for (auto& [version, write] : where.writes) {
      if (write.backend == backend) write.done = std::min(write.done, now_);
    }
    for (Span& removal : where.removals) {
      if (removal.backend == backend) removal.done = std::min(removal.done, now_);
    }
    if (!is_empty) continue;
    where.removals.push_back(span);
    if (registers_ == Registers::kPerCopy) where.sightings.push_back({{}, span});
  }
  ++now_;
}

// --- what is answered ----------------------------------------------------------------------------------------------

void History::answer(Request& request, const Result& result, bool restarted) {
  request.ended = ++now_;
  if (++request.answers != 1) return complain(request, "was answered twice");
  ++answered_;
  Span span = span_of(request);
  span.done = now_;
  if (restarted) span.last = kNever;
  if (op::has_no_answer(result.code)) {
    ++failed_;
    if (!may_fail_) complain(request, std::string("failed: ") + op::to_string(result.code));
    return;
  }
  if (request.kind == Kind::kFlush) return answer_flush(request, result.code);
  if (request.began == 0) return complain(request, "was answered, and never sent");
  if (request.kind == Kind::kGet && result.code == ResultCode::kHit) return check_hit(request, result, span);
  if (request.kind == Kind::kArith && result.code == ResultCode::kNumber) {
    return check_number(request, result.number, span);
  }
  on_change(request, result.code, span);
}

void History::on_change(Request& request, ResultCode code, const Span& span) {
  Register& where = at(request.key, request.backend);
  const Version own{request.id, 0};
  const bool is_set = request.kind == Kind::kSet || request.kind == Kind::kUpload || request.kind == Kind::kAdd;
  if (is_set && code == ResultCode::kStored) {
    if (request.kind == Kind::kAdd) check_absent(request, span);
    if (has_copies(request)) {
      end_removals(request);
    } else {
      std::erase_if(where.removals, [&](const Span& removal) { return removal.began == span.began; });
    }
    return see(where, own, span);
  }
  if (request.kind == Kind::kAdd && code == ResultCode::kNotStored) {
    where.writes.erase(own);
    return check_present(request, span);
  }
  // Its parts were dropped: the old item is gone, too.
  if (request.kind == Kind::kUpload && code == ResultCode::kOutOfMemory && may_fail_) {
    where.writes.erase(own);
    for (Span& removal : where.removals) {
      if (removal.began == span.began) removal.done = span.done;
    }
    return;
  }
  if (request.kind == Kind::kDelete && code == ResultCode::kDeleted) {
    check_present(request, span);
    return see(where, {}, span);
  }
  const bool may_miss = request.kind == Kind::kGet || request.kind == Kind::kDelete;
  if (!may_miss || code != ResultCode::kMiss) return complain(request, std::string("got ") + op::to_string(code));
  ++misses_;
  check_absent(request, span);
  if (may_return_ && request.kind == Kind::kGet) return;
  see(where, {}, span);
}

// Those of all copies, by an upload.
void History::end_removals(const Request& request) {
  for (uint32_t backend = 0; backend < backends_; ++backend) {
    for (Span& removal : at(request.key, backend).removals) {
      if (removal.began == request.began) removal.done = std::min(removal.done, now_);
    }
  }
}

void History::answer_flush(Request& request, ResultCode code) {
  if (code != ResultCode::kOk) return complain(request, std::string("got ") + op::to_string(code));
  const Span span{.began = request.began, .done = now_, .proxy = request.proxy};
  for (uint32_t key = 0; key < keys_; ++key) {
    if (registers_ == Registers::kThroughProxy) {
      see(at(key, 0), {}, span);
      continue;
    }
    for (const uint32_t backend : request.backends) {
      Span there = span;
      there.backend = backend;
      see(at(key, backend), {}, there);
    }
  }
}

// The version that the bytes say they are, and every byte of it.
void History::check_hit(Request& request, const Result& result, const Span& span) {
  ++hits_;
  std::string value(result.value);
  for (const std::string_view piece : result.further) value += piece;
  if (value.size() != result.total_length) return complain(request, "got a value in part");
  if (is_number(request.key)) {
    uint64_t number = 0;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
    if (read.ec != std::errc() || read.ptr != value.data() + value.size()) return complain(request, "got no number");
    return check_version(request, {number >> kCountBits, number & ((1 << kCountBits) - 1)}, span);
  }
  uint64_t writer = 0;
  const size_t colon = value.find(':');
  if (colon != std::string::npos) std::from_chars(value.data() + colon + 1, value.data() + value.size(), writer);
  if (writer == 0 || writer > requests_.size()) return complain(request, "got a value that nobody wrote");
  const Request& wrote = requests_[writer - 1];
  if (value != value_of(wrote)) return complain(request, "got a torn value of " + name(wrote));
  if (wrote.key != request.key) return complain(request, "got another key's value, of " + name(wrote));
  if (result.client_flags != flags_of(wrote)) return complain(request, "got other flags than those of " + name(wrote));
  check_version(request, {writer, 0}, span);
}

void History::check_number(Request& request, uint64_t number, const Span& span) {
  const Version version{number >> kCountBits, number & ((1 << kCountBits) - 1)};
  Register& where = at(request.key, request.backend);
  if (version.writer != request.id) {
    where.writes.erase({request.id, 0});
    const auto same = where.writes.find(version);
    const bool is_new = same == where.writes.end();
    if (version.count == 0 || (!is_new && same->second.session != 0)) {
      return complain(request, "got the number of another addition, " + std::to_string(number));
    }
    const uint64_t seen = is_new ? kNever : same->second.done;
    where.writes[version] = span;
    where.writes[version].done = std::min(seen, span.done);
  } else {
    if (version.count != 0) return complain(request, "was executed more than once");
    check_absent(request, span);
  }
  check_version(request, version, span);
}

// --- what may be read ----------------------------------------------------------------------------------------------

// Whether the one had certainly taken effect before the other did.
bool History::is_before(const Span& one, const Span& other) {
  if (one.done < other.began) return true;
  return one.session != 0 && one.session == other.session && one.last < other.place;
}

uint32_t History::origin_of(const Register& where, Version version, uint32_t removed_at) {
  const auto creation = where.writes.find({version.writer, 0});
  return version.writer == 0 || creation == where.writes.end() ? removed_at : creation->second.backend;
}

bool History::binds(const Register& where, const Sighting& sighting, Version version, const Span& span) const {
  if (!is_before(sighting.span, span)) return false;
  if (registers_ == Registers::kPerFilledCopy) return sighting.span.backend == span.backend;
  if (registers_ == Registers::kPerOrigin) {
    return sighting.span.backend == span.backend ||
           origin_of(where, sighting.version, sighting.span.backend) == origin_of(where, version, span.backend);
  }
  if (registers_ != Registers::kThroughProxy || sighting.span.proxy == span.proxy) return true;
  const auto looked = looked_.find(span.proxy);
  return looked != looked_.end() && sighting.span.done <= looked->second;
}

void History::see(Register& where, Version version, const Span& span) {
  where.sightings.push_back({version, span});
  if (version.writer == 0) {
    // A removal that is done at its answer.
    for (Span& removal : where.removals) {
      if (removal.began == span.began) removal.done = std::min(removal.done, span.done);
    }
    return;
  }
  // A version of a failed request whose end was not known took effect before it was seen.
  Span& write = where.writes.try_emplace(version, Span{}).first->second;
  write.done = std::min(write.done, span.done);
}

void History::check_version(const Request& request, Version version, const Span& span) {
  Register& where = at(request.key, request.backend);
  const auto creation = where.writes.find({version.writer, 0});
  const bool is_known = version.writer > 0 && version.writer <= requests_.size() && creation != where.writes.end();
  if (!is_known) return complain(request, "got what was never written here, of " + std::to_string(version.writer));
  if (version.count >= where.additions + (is_number(request.key) ? 0 : 1)) {
    return complain(request, "got a number with more additions than were asked for");
  }
  // A number that was created again is another one: the first is gone, however often it was added to.
  const Span& write = creation->second;
  for (const Sighting& sighting : where.sightings) {
    if (sighting.version == version || !binds(where, sighting, version, span)) continue;
    const bool is_later_count = sighting.version.writer == version.writer && sighting.version.count > version.count;
    const bool is_earlier_count = sighting.version.writer == version.writer && !is_later_count;
    if (is_earlier_count) continue;
    if (is_later_count || is_before(write, sighting.span)) {
      return complain(request, "got the stale version of " + name(requests_[version.writer - 1]) + " after that of " +
                                   std::to_string(sighting.version.writer) + " was seen");
    }
  }
  see(where, version, span);
}

void History::check_absent(const Request& request, const Span& span) {
  if (may_miss_) return;
  Register& where = at(request.key, request.backend);
  const bool may_be = std::ranges::any_of(where.removals, [&](const Span& removal) {
    if (removal.began == span.began || is_before(span, removal)) return false;
    return std::ranges::none_of(where.sightings, [&](const Sighting& sighting) {
      return sighting.version.writer != 0 && is_before(removal, sighting.span) && is_before(sighting.span, span);
    });
  });
  if (!may_be) complain(request, "missed a value that nothing removed");
}

void History::check_present(const Request& request, const Span& span) {
  Register& where = at(request.key, request.backend);
  const bool may_be = std::ranges::any_of(where.writes, [&](const auto& each) {
    if (each.first.writer == request.id) return false;
    return std::ranges::none_of(where.sightings, [&](const Sighting& sighting) {
      return sighting.version.writer == 0 && is_before(each.second, sighting.span) &&
             binds(where, sighting, each.first, span);
    });
  });
  if (!may_be) complain(request, "found a value where there was none");
}

std::string History::name(const Request& request) const {
  std::string text = std::string(to_string(request.kind)) + " " + std::to_string(request.id);
  if (request.kind != Kind::kFlush) text += " of " + key_text(request.key) + " at b" + std::to_string(request.backend);
  return text;
}

void History::complain(const Request& request, const std::string& what) {
  fail(name(request) + " " + what + " (from " + std::to_string(request.began) + " to " + std::to_string(now_) + ")");
}

void History::fail(const std::string& what) {
  if (failure_.empty()) failure_ = what;
}

}  // namespace egret::sim
