// All members of a pool, of whichever sources: the entries of the option `backends`, in their order, and what is add()ed.
//
//   "rdma:10.0.0.1:11311"            ─▶ a member
//   "dns+rdma:…", "srv+rdma:…"       ─▶ NameService ─ on_members() ─┐
//   add(a file of members, …)        ─▶ Source ─────── on_members() ─┴─▶ merged once a pass of the loop ─▶ DirectoryObserver
//
//   auto made = Directory::create(loop, {config.backends, {{config.dns_servers}}}, observer);
//   directory->start();   …   observer.on_members(directory): directory.members() are the pool's from here on
//   directory->reload({new_backends, {{new_dns_servers}}});   // SIGHUP
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
  NameServiceOptions names;          // .resolver.servers: the option `dns_servers`
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
  // Checks entries without resolving names. There may be none, if sources are added.
  static base::Status check_entries(std::span<const std::string> entries);

  static base::Expected<std::unique_ptr<Directory>> create(events::EventLoop& loop, const DirectoryOptions& options,
                                                           DirectoryObserver& observer);

  // Before start(). The source's observer is this directory; its members come after those of the entries.
  void add(std::unique_ptr<Source> source);
  // Begins to resolve names. With plain entries alone, members() are there at once.
  void start();
  // After start(): other entries or options. A name that was an entry before keeps what it has learned, and is resolved
  // now. The observer is told if the merged list differs. An error changes nothing.
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
  // A member that is written out, or a source.
  struct Part {
    pool::Member member;
    std::string entry;  // of a name: NameEntry::text
    std::unique_ptr<Source> source;
    NameService* names = nullptr;  // `source`, of a name
  };
  struct Merge;

  Directory(events::EventLoop& loop, DirectoryObserver& observer) : loop_(loop), observer_(observer) {}

  std::vector<Part> make_parts(const DirectoryOptions& options);
  void need_event();
  bool has_each_learned() const;
  void schedule_merge();
  void on_change();
  void publish();
  Merge merge() const;

  events::EventLoop& loop_;
  DirectoryObserver& observer_;
  std::vector<Part> entries_;
  std::vector<Part> added_;
  std::vector<pool::Member> members_;
  std::vector<std::string> problems_;
  bool is_stale_ = true;  // something has changed since the last merge
  events::Event change_;  // none while all entries are plain
};

}  // namespace egret::discovery
