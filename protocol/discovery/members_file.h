// A watched file of members, the option `backends_file`.
//
//   the directory has changed ─▶ wait (jitter) ─▶ look ─▶ wait (settle) ─▶ look: the same? ─▶ parse ─▶ removes too many? ─▶ members()
//   look_every ───────────────▶                    ▲                          no │                                             │
//                                                  └─────────────────────────────┘                              the copy file ◀┘
//
// A file that cannot be used (missing, invalid, or it removes more members than `most_removed` percent) changes nothing:
// the members stay, and problem() says why. The last good members are also in the copy file. A start begins with those
// of the copy and then looks at the file by the same rules, so a broken file does not leave a restarted proxy without
// members.
//
// Thread: the loop's. It blocks while it reads and writes these small files.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "discovery/directory_watch.h"
#include "discovery/source.h"
#include "events/event.h"
#include "pool/member.h"

namespace egret::discovery {

inline constexpr size_t kMaxMembersFile = size_t{1} << 20;

struct MembersFileOptions {
  std::string path;
  std::string copy_path{};     // empty: path + ".good"
  bool keeps_copy = true;      // writes it; else it is only read
  unsigned most_removed = 50;  // percent of the members that a change may remove by itself
  // A change is looked at after a random part of this, so that a thousand proxies do not all change at once.
  std::chrono::milliseconds jitter{2000};
  // A file counts when two looks so far apart see the same: who writes it in place may be half way.
  std::chrono::milliseconds settle{100};
  // And up to a quarter more, at random: for changes that inotify does not show (NFS, a link to another directory).
  std::chrono::milliseconds look_every{10000};
  uint64_t (*random)() = &base::random_u64;
};

class MembersFile final : public Source {
 public:
  MembersFile(events::EventLoop& loop, MembersFileOptions options, SourceObserver& observer);

  // Reads the file, or else the copy, and begins to watch. The observer is told of what changes after this.
  void start();
  // Reads the file now and tells the observer before it returns: an operator has asked for it (SIGHUP), so that any
  // number of members may go. `most_removed` as in the options, from here on.
  void reload(unsigned most_removed);

  std::span<const pool::Member> members() const override { return members_; }
  std::string name() const override;
  const std::string& problem() const override { return problem_; }
  std::optional<std::chrono::system_clock::time_point> learned_at() const override { return learned_at_; }

 private:
  // What a look found: the file's text, or why it cannot be read.
  struct Look {
    bool is_read = false;
    std::string text;
    bool operator==(const Look&) const = default;
  };

  Look look() const;
  void on_change();
  void on_look();
  void on_look_again();
  void judge(const Look& look, bool may_remove_any);
  void take(std::vector<pool::Member> members);
  void keep(const std::string& why);
  // Returns why there is no copy to use, or nothing.
  std::string read_copy();
  void tell(bool has_new_members, std::string problem);
  size_t removed_by(std::span<const pool::Member> members) const;
  // Returns what is wrong, or nothing.
  std::string write_copy() const;

  MembersFileOptions options_;
  SourceObserver& observer_;
  std::vector<pool::Member> members_;
  std::string problem_;
  std::optional<std::chrono::system_clock::time_point> learned_at_;
  bool is_started_ = false;
  bool is_from_copy_ = false;      // members_ have not been seen in the file since the start
  std::string copy_fault_;         // why there was no copy to use at the start
  std::optional<Look> judged_;     // what members_ and problem_ follow from
  std::optional<Look> unsettled_;  // the last look, if it was not the same as the one before
  int looks_ = 0;                  // since the file began to change
  DirectoryWatch watch_;
  events::Event look_timer_;
  events::Event again_timer_;
};

}  // namespace egret::discovery
