#include "discovery/members_file.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "discovery/members_text.h"
#include "pool/ketama.h"

namespace egret::discovery {

namespace {

// A file that changes all the time is taken after so many looks, if it is valid.
constexpr int kMostLooks = 10;

MembersFileOptions with_defaults(MembersFileOptions options) {
  if (options.copy_path.empty()) options.copy_path = options.path + ".good";
  return options;
}

// A random part of `whole`.
std::chrono::microseconds part_of(std::chrono::microseconds whole, uint64_t random) {
  return whole.count() <= 0 ? whole : std::chrono::microseconds(random % (static_cast<uint64_t>(whole.count()) + 1));
}

}  // namespace

MembersFile::MembersFile(events::EventLoop& loop, MembersFileOptions options, SourceObserver& observer)
    : options_(with_defaults(std::move(options))),
      observer_(observer),
      watch_(loop, options_.path, [this] { on_change(); }),
      look_timer_(events::Event::timer<&MembersFile::on_look>(loop, *this)),
      again_timer_(events::Event::timer<&MembersFile::on_look_again>(loop, *this)) {}

std::string MembersFile::name() const {
  return "file " + base::quoted_if_odd(options_.path);
}

void MembersFile::start() {
  copy_fault_ = read_copy();
  judge(look(), false);
  is_started_ = true;
  again_timer_.add(options_.look_every + part_of(options_.look_every / 4, options_.random()));
}

void MembersFile::reload(unsigned most_removed) {
  options_.most_removed = most_removed;
  look_timer_.del();
  unsettled_.reset();
  looks_ = 0;
  judge(look(), true);
}

// --- When to look

void MembersFile::on_change() {
  // A look that is due sees this change, too; so a file that changes all the time is looked at all the same.
  if (is_started_ && !look_timer_.pending()) look_timer_.add(part_of(options_.jitter, options_.random()));
}

void MembersFile::on_look_again() {
  watch_.renew();
  if (!look_timer_.pending() && look() != judged_) on_change();
  again_timer_.add(options_.look_every + part_of(options_.look_every / 4, options_.random()));
}

void MembersFile::on_look() {
  Look now = look();
  if (now != judged_ && now != unsettled_ && ++looks_ < kMostLooks) {
    unsettled_ = std::move(now);
    look_timer_.add(options_.settle);
    return;
  }
  unsettled_.reset();
  looks_ = 0;
  judge(now, false);
}

MembersFile::Look MembersFile::look() const {
  auto text = base::read_trusted_file(options_.path, kMaxMembersFile, base::FileTrust::kGiven);
  return text ? Look{true, std::move(text.value())} : Look{false, text.message()};
}

// --- What becomes of it

void MembersFile::judge(const Look& look, bool may_remove_any) {
  judged_ = look;
  if (!look.is_read) return keep(look.text);
  auto parsed = parse_members(look.text, options_.path);
  if (!parsed) return keep(parsed.message());
  const size_t removed = removed_by(parsed.value());
  if (!may_remove_any && removed * 100 > members_.size() * options_.most_removed) {
    return keep(base::quoted_if_odd(options_.path) + " would remove " + std::to_string(removed) + " of " +
                base::counted(members_.size(), "member") + ", more than " + std::to_string(options_.most_removed) +
                " %; a reload (SIGHUP) accepts it");
  }
  take(std::move(parsed.value()));
}

// By name: a member whose address or weight alone is another stays.
size_t MembersFile::removed_by(std::span<const pool::Member> members) const {
  std::unordered_set<std::string_view> names;
  for (const pool::Member& member : members) names.insert(pool::ketama_name(member.name));
  return static_cast<size_t>(std::ranges::count_if(
      members_, [&](const pool::Member& old) { return !names.contains(pool::ketama_name(old.name)); }));
}

void MembersFile::take(std::vector<pool::Member> members) {
  const bool is_new = members != members_;
  members_ = std::move(members);
  is_from_copy_ = false;
  learned_at_ = std::chrono::system_clock::now();
  tell(is_new, options_.keeps_copy ? write_copy() : "");
}

void MembersFile::keep(const std::string& why) {
  const std::string used = is_from_copy_      ? "the last good copy is used, " + base::quoted_if_odd(options_.copy_path)
                           : members_.empty() ? "no copy to use: " + copy_fault_
                                              : "the members before it are kept";
  tell(false, why + "; " + used);
}

// The observer is told last: it may ask for everything.
void MembersFile::tell(bool has_new_members, std::string problem) {
  const bool has_new_problem = problem != problem_;
  problem_ = std::move(problem);
  if (!is_started_) return;
  if (has_new_problem) observer_.on_problem(*this);
  if (has_new_members) observer_.on_members(*this);
}

// --- The copy

std::string MembersFile::read_copy() {
  const auto text = base::read_trusted_file(options_.copy_path, kMaxMembersFile, base::FileTrust::kOwn);
  if (!text) return text.message();
  auto members = parse_members(text.value(), options_.copy_path);
  if (!members) return members.message();
  members_ = std::move(members.value());
  is_from_copy_ = true;
  return {};
}

// What is there already is not written again.
std::string MembersFile::write_copy() const {
  const std::string text = members_text("The last good members of " + options_.path, members_);
  if (const auto there = base::read_trusted_file(options_.copy_path, kMaxMembersFile, base::FileTrust::kOwn);
      there && there.value() == text) {
    return {};
  }
  const base::Status written = base::replace_file(options_.copy_path, text);
  return written ? "" : "no copy of the members is kept for the next start: " + written.message();
}

}  // namespace egret::discovery
