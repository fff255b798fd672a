// All members of a pool: those of the entries of the option `backends`, in their order, and then those of the file
// `backends_file`.
//
//   "rdma:10.0.0.1:11311"            ─▶ a member
//   "dns+rdma:…", "srv+rdma:…"       ─▶ NameService ─ on_members() ─┐
//   the file                         ─▶ MembersFile ── on_members() ─┴─▶ merged once a pass of the loop ─▶ DirectoryObserver
//
//   DirectoryOptions options{.entries = the option backends};
//   options.names.resolver.servers = the option dns_servers;
//   options.file.path = the option backends_file;
//   auto made = Directory::create(loop, options, observer);   // or an error that names the entry
//   directory->start();   …   observer.on_members(directory): directory.members() are the pool's from here on
//   directory->reload(other_options);                         // SIGHUP
//
// members() changes as a whole: not before each source has answered or failed (is_settled()), and never to an empty list
// or to one of more than pool::kMaxMembers; problems() then says that the list before stays.
// Names are unique in the list: of two members with one name the first stays, and problems() names both.
// With plain entries alone it makes no timer, no socket and no event, until a reload.
//
// Thread: the event loop's.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "discovery/members_file.h"
#include "discovery/name_service.h"
#include "discovery/source.h"
#include "events/event.h"
#include "pool/member.h"

namespace egret::discovery {

class Directory;

// Called from the loop only, never from within a call of the directory. Neither may destroy the directory; both may
// reload it.
class DirectoryObserver {
 public:
  // members() are others than before, or in another order.
  virtual void on_members(Directory& directory) = 0;
  virtual void on_problems(Directory& directory) = 0;

 protected:
  ~DirectoryObserver() = default;
};

struct DirectoryOptions {
  std::vector<std::string> entries;  // of the option `backends`
  NameServiceOptions names{};        // .resolver.servers: the option `dns_servers`
  MembersFileOptions file{};         // .path: the option `backends_file`; empty: none
};

// A source as metrics and the page show it.
struct SourceStatus {
  std::string name;     // "srv+rdma:_egret._tcp.pool", "file /etc/egret/backends"
  size_t members = 0;   // that it gives
  std::string problem;  // empty: none
  std::optional<std::chrono::system_clock::time_point> learned_at;  // last, in whole; nothing: never
};

class Directory final : public SourceObserver {
 public:
  // Checks entries without resolving names. There may be none, if there is a file.
  static base::Status check_entries(std::span<const std::string> entries);

  static base::Expected<std::unique_ptr<Directory>> create(events::EventLoop& loop, const DirectoryOptions& options,
                                                           DirectoryObserver& observer);

  // Before start(). A source of another kind, whose observer is this directory; its members come last.
  void add(std::unique_ptr<Source> source);
  // Reads the file and begins to resolve names. Without names, members() are there at once.
  void start();
  // After start(): other entries or options, or the same ones, which are looked up again. A name that was an entry before
  // keeps what it has learned; the file may remove any number of members. The observer is told if the merged list differs.
  // An error changes nothing.
  base::Status reload(const DirectoryOptions& options);

  // At most pool::kMaxMembers. Empty: not settled yet, or no source has learned any.
  std::span<const pool::Member> members() const { return members_; }
  // For people, a line each; empty: all is well.
  const std::vector<std::string>& problems() const { return problems_; }
  // Each source in its order; plain entries are none.
  std::vector<SourceStatus> status() const;
  // Every source has answered or failed at least once, and members() has what they said.
  bool is_settled() const;

  void on_members(Source& source) override;
  void on_problem(Source& source) override;

 private:
  // An entry: a member that is written out, or a name.
  struct Part {
    pool::Member member;
    std::string entry;  // of a name: NameEntry::text
    std::unique_ptr<NameService> names;
  };
  struct Merge;

  Directory(events::EventLoop& loop, DirectoryObserver& observer) : loop_(loop), observer_(observer) {}

  std::vector<Part> make_parts(const DirectoryOptions& options);
  void set_file(const MembersFileOptions& options);
  void need_event();
  std::vector<Source*> sources() const;
  bool has_each_learned() const;
  void schedule_merge();
  void on_change();
  void publish();
  Merge merge() const;

  events::EventLoop& loop_;
  DirectoryObserver& observer_;
  std::vector<Part> entries_;
  MembersFileOptions file_options_;
  std::unique_ptr<MembersFile> file_;  // none without a path
  std::vector<std::unique_ptr<Source>> added_;
  std::vector<pool::Member> members_;
  std::vector<std::string> problems_;
  bool is_stale_ = true;  // something has changed since the last merge
  events::Event change_;  // none while all entries are plain
};

}  // namespace egret::discovery
