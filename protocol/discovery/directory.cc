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
  void add(const Source& source);
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

void Directory::Merge::add(const Source& source) {
  const std::string origin = source.name();
  if (!source.problem().empty()) problems.push_back(origin + ": " + source.problem());
  for (const pool::Member& member : source.members()) add(member, origin);
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
  directory->set_file(options.file);
  return directory;
}

void Directory::add(std::unique_ptr<Source> source) {
  added_.push_back(std::move(source));
  need_event();
}

void Directory::start() {
  if (file_ != nullptr) file_->start();
  for (const Part& part : entries_) {
    if (part.names != nullptr) part.names->start();
  }
  publish();
}

Status Directory::reload(const DirectoryOptions& options) {
  if (Status valid = check_entries(options.entries); !valid) return valid;
  need_event();
  entries_ = make_parts(options);
  for (const Part& part : entries_) {
    if (part.names != nullptr) part.names->start();
  }
  const bool is_same_file =
      file_ != nullptr && options.file.path == file_options_.path && options.file.copy_path == file_options_.copy_path;
  if (is_same_file) {
    file_->reload(options.file.most_removed);
  } else {
    set_file(options.file);
    if (file_ != nullptr) file_->start();
  }
  schedule_merge();
  return Status::ok();
}

void Directory::set_file(const MembersFileOptions& options) {
  file_options_ = options;
  file_.reset();
  if (options.path.empty()) return;
  file_ = std::make_unique<MembersFile>(loop_, options, *this);
  need_event();
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
      part.names = std::make_unique<NameService>(loop_, std::move(entry), options.names, *this);
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
  return std::ranges::all_of(
      sources(), [](const Source* source) { return !source->members().empty() || !source->problem().empty(); });
}

// In the order of their members.
std::vector<Source*> Directory::sources() const {
  std::vector<Source*> all;
  for (const Part& part : entries_) {
    if (part.names != nullptr) all.push_back(part.names.get());
  }
  if (file_ != nullptr) all.push_back(file_.get());
  for (const std::unique_ptr<Source>& source : added_) all.push_back(source.get());
  return all;
}

std::vector<SourceStatus> Directory::status() const {
  std::vector<SourceStatus> all;
  for (const Source* const source : sources()) {
    all.push_back({source->name(), source->members().size(), source->problem(), source->learned_at()});
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
  for (const Part& part : entries_) {
    if (part.names == nullptr) {
      merged.add(part.member, "");
    } else {
      merged.add(*part.names);
    }
  }
  if (file_ != nullptr) merged.add(*file_);
  for (const std::unique_ptr<Source>& source : added_) merged.add(*source);
  merged.end();
  return merged;
}

}  // namespace egret::discovery
