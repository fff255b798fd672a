#include "discovery/name_service.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/text.h"

namespace egret::discovery {

using std::chrono::milliseconds;

namespace {

constexpr const char* kNoRecords = "the name has no such records";
constexpr const char* kTruncated = "the answer does not fit a DNS message";
constexpr size_t kMaxOpenQuestions = 32;  // more at once overrun the receive buffer of a name server
// After so many questions without an answer no further target is asked for: a round would take minutes if servers are
// silent. Fewer may be names of a broken zone.
constexpr size_t kMaxFailures = 32;

// "2026-11-22T19:50:01Z"
std::string utc_text(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm broken_down{};
  ::gmtime_r(&seconds, &broken_down);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &broken_down);
  return text.data();
}

std::string too_many(size_t members) {
  return "the answer is refused: it has " + std::to_string(members) + " members, and a pool has at most " +
         std::to_string(pool::kMaxMembers);
}

void add_text(std::string& text, const std::string& more) {
  text += (text.empty() ? "" : "; ") + more;
}

// Tags of questions: for an address of the target `index` by A or AAAA; for a name of the entry 0 (A, SRV) or 1 (AAAA).
uint64_t tag_of(size_t index, bool is_v6) {
  return 2 * index + (is_v6 ? 1 : 0);
}

}  // namespace

NameService::NameService(events::EventLoop& loop, NameEntry entry, const NameServiceOptions& options,
                         SourceObserver& observer)
    : entry_(std::move(entry)),
      options_(options),
      observer_(observer),
      next_round_(events::Event::timer<&NameService::begin_round>(loop, *this)),
      resolver_(loop, *this) {}

void NameService::start() {
  next_round_.add(milliseconds(0));
}

void NameService::set(NameEntry entry, const NameServiceOptions& options) {
  entry_ = std::move(entry);
  options_ = options;
}

void NameService::begin_round() {
  round_ = Round();
  if (const base::Status opened = resolver_.open(options_.resolver); !opened) {
    fail_round(opened.message());
  } else if (entry_.kind == NameKind::kServices) {
    ask(entry_.host, RecordType::kSrv, 0);
  } else {
    ask(entry_.host, RecordType::kA, tag_of(0, false));
    ask(entry_.host, RecordType::kAaaa, tag_of(0, true));
  }
}

void NameService::ask(const std::string& name, RecordType type, uint64_t tag) {
  ++round_.open_questions;
  resolver_.ask(name, type, tag);
}

void NameService::on_reply(uint64_t tag, const Reply& reply) {
  --round_.open_questions;
  if (reply.failure.empty()) {
    round_.ttl = std::min(round_.ttl, reply.answer.ttl);
    round_.unusable += reply.answer.unusable;
  }
  if (entry_.kind == NameKind::kAddresses) {
    round_.replies.at(tag) = reply;
    if (round_.open_questions == 0) finish_addresses();
  } else if (round_.targets.empty()) {
    take_services(reply);
  } else {
    take_target(tag / 2, tag % 2 == 1, reply);
    ask_targets();
  }
}

// --- Addresses (dns+)

void NameService::finish_addresses() {
  std::vector<AddressRecord> addresses;
  std::string failure;
  std::vector<pool::Member> unknown;  // members of a family of addresses that could not be learned
  for (const bool is_v6 : {false, true}) {
    const Reply& reply = round_.replies.at(tag_of(0, is_v6));
    addresses.insert(addresses.end(), reply.answer.addresses.begin(), reply.answer.addresses.end());
    if (reply.failure.empty() && !reply.answer.is_truncated) continue;
    if (reply.says_no_data) continue;
    failure = reply.failure.empty() ? kTruncated : reply.failure;
    std::copy_if(members_.begin(), members_.end(), std::back_inserter(unknown),
                 [is_v6](const pool::Member& member) { return is_v6_address(member.address) == is_v6; });
  }
  if (addresses.empty()) {
    if (failure.empty()) failure = round_.replies[0].failure.empty() ? kNoRecords : round_.replies[0].failure;
    return fail_round(failure);
  }
  finish_round(with_missing(members_of_addresses(entry_, addresses), unknown), failure);
}

// --- Services (srv+)

void NameService::take_services(const Reply& reply) {
  if (!reply.failure.empty()) return fail_round(reply.failure);
  round_.is_truncated = reply.answer.is_truncated;
  round_.targets = targets_of(entry_, reply.answer, round_.unusable);
  if (round_.targets.size() > pool::kMaxMembers) return fail_round(too_many(round_.targets.size()));
  if (round_.targets.empty()) {
    return fail_round(round_.unusable > 0 ? "none of its records can be used" : kNoRecords);
  }
  // An additional AAAA record may stand without the A record, for want of room: only an IPv4 address is taken unasked.
  std::vector<AddressRecord> additional;
  std::copy_if(reply.answer.additional.begin(), reply.answer.additional.end(), std::back_inserter(additional),
               [](const AddressRecord& record) { return !record.is_v6; });
  std::ranges::sort(additional, {}, &AddressRecord::owner);
  for (Target& target : round_.targets) {
    const auto first = std::ranges::lower_bound(additional, target.host, {}, &AddressRecord::owner);
    const auto last = std::ranges::upper_bound(additional, target.host, {}, &AddressRecord::owner);
    target.address = choose_address(entry_, {first, last}, target.port, address_of(target.name));
  }
  ask_targets();
}

// Asks for the addresses that are missing, and ends the round when there is nothing more to ask.
void NameService::ask_targets() {
  std::vector<Target>& targets = round_.targets;
  for (size_t& next = round_.next_target; next < targets.size(); ++next) {
    if (!targets[next].address.empty()) continue;
    if (round_.failures >= kMaxFailures) {
      leave_unresolved(targets[next], "not asked for");
      continue;
    }
    if (round_.open_questions >= kMaxOpenQuestions) return;
    ask(targets[next].host + ".", RecordType::kA, tag_of(next, false));
  }
  if (round_.open_questions == 0) finish_services();
}

void NameService::take_target(size_t index, bool is_v6, const Reply& reply) {
  Target& target = round_.targets.at(index);
  target.address = choose_address(entry_, reply.answer.addresses, target.port, address_of(target.name));
  if (!target.address.empty()) return;
  if (!reply.failure.empty() && !reply.says_no_data) {
    ++round_.failures;
    leave_unresolved(target, reply.failure);
  } else if (is_v6) {
    leave_unresolved(target, reply.failure.empty() ? kNoRecords : reply.failure);
  } else {
    ask(target.host + ".", RecordType::kAaaa, tag_of(index, true));
  }
}

// The address in use stays.
void NameService::leave_unresolved(const Target& target, const std::string& why) {
  if (round_.unresolved++ == 0) round_.first_unresolved = target.host + ": " + why;
}

void NameService::finish_services() {
  std::string failure;
  if (round_.unresolved > 0) {
    failure = std::to_string(round_.unresolved) + " of " + base::counted(round_.targets.size(), "target") +
              " could not be resolved, " + round_.first_unresolved;
  }
  for (Target& target : round_.targets) {
    if (target.address.empty()) target.address = address_of(target.name);
  }
  std::vector<pool::Member> members = members_of_targets(entry_, round_.targets);
  if (round_.is_truncated) {
    add_text(failure, kTruncated);
    members = with_missing(std::move(members), members_);
  }
  finish_round(std::move(members), failure);
}

// Empty: it is no member yet.
std::string NameService::address_of(const std::string& name) const {
  const auto found = std::ranges::lower_bound(members_, name, {}, &pool::Member::name);
  return found != members_.end() && found->name == name ? found->address : std::string();
}

// --- The end of a round

void NameService::fail_round(const std::string& failure) {
  finish_round(members_, failure);
}

// `failure`: what was not learned; empty: all was.
void NameService::finish_round(std::vector<pool::Member> members, std::string failure) {
  resolver_.close();
  if (members.size() > pool::kMaxMembers) {
    failure = too_many(members.size());
    members = members_;
  }
  const auto now = std::chrono::system_clock::now();
  failed_rounds_ = failure.empty() ? 0 : failed_rounds_ + 1;
  if (failed_rounds_ == 0) learned_at_ = now;
  if (failed_rounds_ == 1) failing_since_ = now;
  const bool has_changed = members != members_;
  members_ = std::move(members);

  std::string problem = failure.empty() ? "" : problem_text(failure);
  if (round_.unusable > 0) add_text(problem, base::counted(round_.unusable, "record") + " cannot be used");
  const bool is_other_problem = problem != problem_;
  problem_ = std::move(problem);

  next_round_.add(pause_after_round());
  if (has_changed) observer_.on_members(*this);
  if (is_other_problem) observer_.on_problem(*this);
}

std::string NameService::problem_text(const std::string& failure) const {
  const std::string kept =
      members_.empty() ? "there are no members yet"
                       : "what was known before is kept, " + base::counted(members_.size(), "member") + " in all";
  return failure + " (since " + utc_text(failing_since_) + "; " + kept + ")";
}

// A random time between three quarters of the pause and the pause, but not less than the least; a pause that short is
// prolonged by up to a quarter instead. Proxies that were started together do not ask together for long.
milliseconds NameService::pause_after_round() const {
  milliseconds pause = std::clamp<milliseconds>(std::chrono::seconds(round_.ttl), options_.least, options_.most);
  if (failed_rounds_ > 0) {
    constexpr uint32_t kMaxDoublings = 10;
    pause = std::min(options_.most, options_.least * (1U << std::min(failed_rounds_ - 1, kMaxDoublings)));
  }
  const milliseconds shortest = std::max(options_.least, pause * 3 / 4);
  const milliseconds longest = std::min(options_.most, std::max(pause, options_.least * 5 / 4));
  return shortest + (longest - shortest) * static_cast<int64_t>(options_.random() % 101) / 100;
}

}  // namespace egret::discovery
