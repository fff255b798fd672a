#include "discovery/directory_watch.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include <sys/inotify.h>
#include <unistd.h>

namespace egret::discovery {

namespace {

constexpr uint32_t kEvents = IN_CLOSE_WRITE | IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM |
                             IN_MOVED_TO | IN_ONLYDIR | IN_EXCL_UNLINK;

}  // namespace

DirectoryWatch::DirectoryWatch(events::EventLoop& loop, const std::string& file, Changed changed)
    : changed_(std::move(changed)), inotify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  const std::filesystem::path path(file);
  directory_ = path.has_parent_path() ? path.parent_path().string() : ".";
  entry_ = path.filename().string();
  if (!inotify_.is_open()) return;
  ready_ =
      events::Event::on_fd<&DirectoryWatch::on_ready>(loop, inotify_.get(), events::kRead | events::kPersist, *this);
  if (!ready_.add()) {
    ready_.reset();
    inotify_.reset();
    return;
  }
  renew();
}

void DirectoryWatch::renew() {
  if (!inotify_.is_open()) return;
  const int now = ::inotify_add_watch(inotify_.get(), directory_.c_str(), kEvents);
  if (now == watched_) return;
  if (watched_ >= 0) ::inotify_rm_watch(inotify_.get(), watched_);
  watched_ = now;
}

bool DirectoryWatch::concerns_us(const char* entry) const {
  return entry_ == entry || std::string_view(entry).starts_with("..");
}

// One read: if there is more, the loop calls again after it has served others.
void DirectoryWatch::on_ready() {
  alignas(inotify_event) std::array<char, 4096> buffer;
  const ssize_t length = ::read(inotify_.get(), buffer.data(), buffer.size());
  bool is_changed = false;
  for (const char* at = buffer.data(); at < buffer.data() + length;) {
    inotify_event event{};
    std::memcpy(&event, at, sizeof event);
    const char* const entry = at + sizeof event;
    if ((event.mask & IN_IGNORED) != 0 && event.wd == watched_) watched_ = -1;
    is_changed = is_changed || event.len == 0 || concerns_us(entry);
    at = entry + event.len;
  }
  if (is_changed) changed_();
}

}  // namespace egret::discovery
