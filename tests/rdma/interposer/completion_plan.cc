#include "completion_plan.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "counter_file.h"
#include "plan_text.h"

namespace egret::interposer {
namespace {

struct Plan {
  uint64_t polls = 0;  // for which completions are withheld; 0: they are not
  uint64_t every_poll = 1;
  uint64_t every_event = 0;  // a spurious event for each so many requests for one; 0: for none
};

[[noreturn]] void refuse(const char* name, const char* form) {
  std::fprintf(stderr, "libegret_count_verbs: %s is not %s\n", name, form);
  _exit(70);
}

Plan read_plan() {
  Plan plan;
  if (const char* const wanted = std::getenv("EGRET_VERBS_WITHHOLD"); wanted != nullptr && *wanted != '\0') {
    const std::string_view text = wanted;
    const size_t colon = std::min(text.find(':'), text.size());
    const bool is_read = read_number(text.substr(0, colon), plan.polls) && plan.polls > 0 &&
                         (colon == text.size() || read_every(text.substr(colon + 1), plan.every_poll));
    if (!is_read) refuse("EGRET_VERBS_WITHHOLD", "POLLS[:every N]");
  }
  if (const char* const wanted = std::getenv("EGRET_VERBS_SPURIOUS"); wanted != nullptr && *wanted != '\0') {
    if (!read_every(wanted, plan.every_event)) refuse("EGRET_VERBS_SPURIOUS", "every N");
  }
  return plan;
}
const Plan& plan() {
  static const Plan read = read_plan();
  return read;
}

struct Queue {
  std::mutex mutex;
  bool must_find = false;  // an event was asked for, and no poll has found nothing since
  std::deque<ibv_wc> withheld;
  uint64_t polls_left = 0;
  uint64_t not_acknowledged = 0;  // spurious events
};
struct Channel {
  int device_fd = -1, event_fd = -1;  // both in the epoll that the channel has
  std::vector<ibv_cq*> due;
};
struct State {
  std::mutex mutex;
  std::map<const ibv_cq*, Queue> queues;
  std::map<const ibv_comp_channel*, Channel> channels;
  std::atomic<uint64_t> polls = 0, events = 0;  // that could be concerned, so far
};
State& state() {
  static auto* const instance = new State;
  return *instance;
}
std::mutex& descriptors() {
  static auto* const instance = new std::mutex;
  return *instance;
}

// Stays where it is until the queue is destroyed.
Queue& queue_of(const ibv_cq* queue) {
  const std::scoped_lock held(state().mutex);
  return state().queues[queue];
}

int give_withheld(Queue& queue, int most, ibv_wc* completions) {
  int given = 0;
  for (; given < most && !queue.withheld.empty(); ++given) {
    completions[given] = queue.withheld.front();
    queue.withheld.pop_front();
  }
  return given;
}

// Whoever gets fewer completions than there was room for takes the queue to be empty.
int find_all(Queue& queue, int most, ibv_wc* completions, const Poll& provider) {
  const int given = give_withheld(queue, most, completions);
  const int found = given < most ? provider(most - given, completions + given) : 0;
  if (given == 0 && found <= 0) queue.must_find = false;
  return found < 0 && given == 0 ? found : given + std::max(found, 0);
}

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "libegret_count_verbs: %s\n", what);
  _exit(70);
}

}  // namespace

int bring(ibv_cq* queue, int most, ibv_wc* completions, const Poll& provider) {
  if (plan().polls == 0) return provider(most, completions);
  Queue& of_it = queue_of(queue);
  const std::scoped_lock held(of_it.mutex);
  if (of_it.must_find) return find_all(of_it, most, completions, provider);
  if (of_it.polls_left > 0 && --of_it.polls_left > 0) return 0;
  if (!of_it.withheld.empty()) return give_withheld(of_it, most, completions);
  const int found = provider(most, completions);
  if (found <= 0 || ++state().polls % plan().every_poll != 0) return found;
  of_it.withheld.assign(completions, completions + found);
  of_it.polls_left = plan().polls;
  count(Counter::kWithheld, static_cast<uint64_t>(found));
  return 0;
}

void asked(ibv_cq* queue) {
  if (plan().polls > 0) {
    Queue& of_it = queue_of(queue);
    const std::scoped_lock held(of_it.mutex);
    of_it.must_find = true;
    of_it.polls_left = 0;
  }
  if (plan().every_event == 0 || queue->channel == nullptr) return;
  const std::scoped_lock held(state().mutex);
  const auto channel = state().channels.find(queue->channel);
  if (channel == state().channels.end() || ++state().events % plan().every_event != 0) return;
  channel->second.due.push_back(queue);
  (void)::eventfd_write(channel->second.event_fd, 1);
}

void forget_queue(ibv_cq* queue) {
  const std::scoped_lock held(state().mutex);
  state().queues.erase(queue);
  for (auto& [handle, channel] : state().channels) std::erase(channel.due, queue);
}

void watch_channel(ibv_comp_channel* channel) {
  if (plan().every_event == 0) return;
  Channel watched{.device_fd = channel->fd, .event_fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), .due = {}};
  const int both = ::epoll_create1(EPOLL_CLOEXEC);
  for (const int fd : {watched.device_fd, watched.event_fd}) {
    epoll_event readable{.events = EPOLLIN, .data = {.fd = fd}};
    if (::epoll_ctl(both, EPOLL_CTL_ADD, fd, &readable) != 0) die("cannot watch a completion channel");
  }
  // The program sets O_NONBLOCK on the descriptor that it sees, the epoll's: the device's needs it, too.
  ::fcntl(watched.device_fd, F_SETFL, ::fcntl(watched.device_fd, F_GETFL) | O_NONBLOCK);
  const std::scoped_lock held(state().mutex);
  state().channels[channel] = std::move(watched);
  channel->fd = both;
}

void forget_channel(ibv_comp_channel* channel) {
  const std::scoped_lock held(state().mutex);
  const auto at = state().channels.find(channel);
  if (at == state().channels.end()) return;
  ::close(channel->fd);
  ::close(at->second.event_fd);
  channel->fd = at->second.device_fd;
  state().channels.erase(at);
}

DeviceDescriptor::DeviceDescriptor(ibv_comp_channel* channel) : channel_(channel) {
  if (channel_ == nullptr || plan().every_event == 0) return;
  descriptors().lock();
  const std::scoped_lock held(state().mutex);
  const auto at = state().channels.find(channel_);
  ours_ = channel_->fd;
  if (at != state().channels.end()) channel_->fd = at->second.device_fd;
}

DeviceDescriptor::~DeviceDescriptor() {
  if (ours_ < 0) return;
  channel_->fd = ours_;
  descriptors().unlock();
}

ibv_cq* take_spurious_event(ibv_comp_channel* channel) {
  if (plan().every_event == 0) return nullptr;
  const std::scoped_lock held(state().mutex);
  const auto at = state().channels.find(channel);
  if (at == state().channels.end()) return nullptr;
  Channel& watched = at->second;
  eventfd_t told = 0;
  if (watched.due.empty()) {
    (void)::eventfd_read(watched.event_fd, &told);  // their queues are gone
    return nullptr;
  }
  ibv_cq* const queue = watched.due.back();
  watched.due.pop_back();
  if (watched.due.empty()) (void)::eventfd_read(watched.event_fd, &told);
  ++state().queues[queue].not_acknowledged;
  count(Counter::kSpuriousEvents);
  return queue;
}

unsigned events_of_device(ibv_cq* queue, unsigned events) {
  if (plan().every_event == 0) return events;
  const std::scoped_lock held(state().mutex);
  uint64_t& ours = state().queues[queue].not_acknowledged;
  const auto of_these = static_cast<unsigned>(std::min<uint64_t>(ours, events));
  ours -= of_these;
  return events - of_these;
}

}  // namespace egret::interposer
