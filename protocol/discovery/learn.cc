#include "discovery/learn.h"

#include <utility>

#include "base/status.h"
#include "events/event.h"

namespace egret::discovery {

namespace {

class Learner final : private DirectoryObserver {
 public:
  explicit Learner(DirectoryOptions options) : options_(std::move(options)) {
    options_.file.keeps_copy = false;
    directory_ = std::move(Directory::create(loop_, options_, *this).value());
  }

  Learned learn(std::chrono::milliseconds most) {
    directory_->start();
    time_is_up_.add(most);
    while (!directory_->is_settled() && time_is_up_.pending()) loop_.run_once(true);
    const std::span<const pool::Member> members = directory_->members();
    Learned learned{{members.begin(), members.end()}, directory_->problems()};
    for (const SourceStatus& source : directory_->status()) {
      if (source.members > 0 || !source.problem.empty()) continue;
      learned.problems.push_back(source.name + ": no name server has answered within " + std::to_string(most.count()) +
                                 " ms");
    }
    return learned;
  }

 private:
  void on_members(Directory& /*directory*/) override {}
  void on_problems(Directory& /*directory*/) override {}
  void on_time() {}

  DirectoryOptions options_;
  events::EventLoop loop_;
  events::Event time_is_up_ = events::Event::timer<&Learner::on_time>(loop_, *this);
  std::unique_ptr<Directory> directory_;
};

}  // namespace

Learned learn_members(const DirectoryOptions& options, std::chrono::milliseconds most) {
  return Learner(options).learn(most);
}

}  // namespace egret::discovery
