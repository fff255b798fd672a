#include "discovery/directory.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/text.h"
#include "discovery/name_entry.h"
#include "pool/ketama.h"

namespace egret::discovery {

using base::Status;

// The merged list while it grows.
struct Directory::Merge {
  static constexpr size_t kMaxTwinLines = 8;  // of problems: a thousand would hide the others

  void add(const pool::Member& member, const std::string& origin);
  void end();
  // Why these cannot be the pool's members, or nothing.
  std::string refusal() const;

  std::vector<pool::Member> members;
  std::vector<std::string> problems;

 private:
  // A member as a problem names it. `origin`: its source, or empty for an entry that is the member itself.
  static std::string text_of(const pool::Member& member, const std::string& origin) {
    return origin.empty() ? member.to_string() : member.to_string() + " of " + origin;
  }

  std::unordered_map<std::string, std::string> holders_;  // name, as it is hashed → the member that has it
  size_t twins_ = 0;
};

void Directory::Merge::add(const pool::Member& member, const std::string& origin) {
  const std::string name(pool::ketama_name(member.name));
  if (const auto holder = holders_.find(name); holder != holders_.end()) {
    if (++twins_ > kMaxTwinLines) return;
    problems.push_back(text_of(member, origin) + " is left out: " + holder->second + " has the same name, " + name);
  } else {
    members.push_back(member);
    holders_.emplace(name, text_of(member, origin));
  }
}

void Directory::Merge::end() {
  if (twins_ > kMaxTwinLines) {
    problems.push_back(std::to_string(twins_ - kMaxTwinLines) + " more are left out, as their names are taken");
  }
}

std::string Directory::Merge::refusal() const {
  if (members.empty()) return "no source has any members";
  if (members.size() <= pool::kMaxMembers) return {};
  return "the sources have " + std::to_string(members.size()) + " members in all, and a pool has at most " +
         std::to_string(pool::kMaxMembers);
}

Status Directory::check_entries(std::span<const std::string> entries) {
  std::vector<pool::Member> plain;
  std::unordered_set<std::string> names;
  for (const std::string& entry : entries) {
    if (is_name_entry(entry)) {
      const auto parsed = parse_name_entry(entry);
      if (!parsed) return parsed.status();
      if (!names.insert(parsed.value().text).second) {
        return Status::error(base::quoted(parsed.value().text) + " is there twice");
      }
    } else {
      auto member = pool::parse_member(entry);
      if (!member) return member.status();
      plain.push_back(std::move(member.value()));
    }
  }
  return plain.empty() ? Status::ok() : pool::check_members(plain);
}

base::Expected<std::unique_ptr<Directory>> Directory::create(events::EventLoop& loop, const DirectoryOptions& options,
                                                             DirectoryObserver& observer) {
  if (Status valid = check_entries(options.entries); !valid) return valid;
  std::unique_ptr<Directory> directory(new Directory(loop, observer));
  directory->entries_ = directory->make_parts(options);
  return directory;
}

void Directory::add(std::unique_ptr<Source> source) {
  added_.push_back({{}, {}, std::move(source)});
  need_event();
}

void Directory::start() {
  for (const Part& part : entries_) {
    if (part.names != nullptr) part.names->start();
  }
  publish();
}

Status Directory::reload(const DirectoryOptions& options) {
  if (Status valid = check_entries(options.entries); !valid) return valid;
  entries_ = make_parts(options);
  need_event();
  for (const Part& part : entries_) {
    if (part.names != nullptr) part.names->start();
  }
  schedule_merge();
  return Status::ok();
}

// Takes over the sources of entries_ that are entries again.
std::vector<Directory::Part> Directory::make_parts(const DirectoryOptions& options) {
  std::vector<Part> parts;
  for (const std::string& text : options.entries) {
    Part part;
    if (!is_name_entry(text)) {
      part.member = std::move(pool::parse_member(text).value());
      parts.push_back(std::move(part));
      continue;
    }
    NameEntry entry = std::move(parse_name_entry(text).value());
    const auto before = std::ranges::find(entries_, entry.text, &Part::entry);
    if (before != entries_.end()) {
      part = std::move(*before);
      part.names->set(std::move(entry), options.names);
    } else {
      part.entry = entry.text;
      auto names = std::make_unique<NameService>(loop_, std::move(entry), options.names, *this);
      part.names = names.get();
      part.source = std::move(names);
    }
    need_event();
    parts.push_back(std::move(part));
  }
  return parts;
}

void Directory::need_event() {
  if (!change_.is_set()) change_ = events::Event::timer<&Directory::on_change>(loop_, *this);
}

bool Directory::is_settled() const {
  return !is_stale_ && has_each_learned();
}

// Whether each source has members, or a reason why not.
bool Directory::has_each_learned() const {
  const auto has_learned = [](const Part& part) {
    return part.source == nullptr || !part.source->members().empty() || !part.source->problem().empty();
  };
  return std::ranges::all_of(entries_, has_learned) && std::ranges::all_of(added_, has_learned);
}

std::vector<SourceStatus> Directory::status() const {
  std::vector<SourceStatus> all;
  for (const std::vector<Part>* parts : {&entries_, &added_}) {
    for (const Part& part : *parts) {
      if (part.source == nullptr) continue;
      const Source& source = *part.source;
      all.push_back({source.name(), source.members().size(), source.problem(), source.learned_at()});
    }
  }
  return all;
}

void Directory::on_members(Source&) {
  schedule_merge();
}

void Directory::on_problem(Source&) {
  schedule_merge();
}

// Several changes of one pass are merged once.
void Directory::schedule_merge() {
  is_stale_ = true;
  change_.activate();
}

void Directory::on_change() {
  const std::vector<pool::Member> members = members_;
  const std::vector<std::string> problems = problems_;
  publish();
  if (members != members_) observer_.on_members(*this);
  if (problems != problems_) observer_.on_problems(*this);
}

void Directory::publish() {
  is_stale_ = false;
  Merge merged = merge();
  problems_ = std::move(merged.problems);
  if (!has_each_learned()) return;
  const std::string refusal = merged.refusal();
  if (refusal.empty()) {
    members_ = std::move(merged.members);
  } else if (!members_.empty()) {
    problems_.push_back(refusal + ": the pool keeps the " + base::counted(members_.size(), "member") + " it has");
  } else {
    problems_.push_back(refusal);
  }
}

Directory::Merge Directory::merge() const {
  Merge merged;
  for (const std::vector<Part>* parts : {&entries_, &added_}) {
    for (const Part& part : *parts) {
      if (part.source == nullptr) {
        merged.add(part.member, "");
        continue;
      }
      const std::string origin = part.source->name();
      if (!part.source->problem().empty()) merged.problems.push_back(origin + ": " + part.source->problem());
      for (const pool::Member& member : part.source->members()) merged.add(member, origin);
    }
  }
  merged.end();
  return merged;
}

}  // namespace egret::discovery
