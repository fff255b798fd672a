#include "transport/verbs/queues.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <string>
#include <utility>

#include <sys/epoll.h>

#include "transport/verbs.h"
#include "transport/verbs/work_id.h"

namespace egret::transport::verbs {

using base::Expected;
using base::Status;
using base::UniqueFd;
using device::Device;
using device::Notifier;

namespace {

constexpr int kPollBatch = 32;
constexpr int kMostAtOnce = 256;           // completions of one queue in one poll
constexpr uint32_t kFirstPairs = 4;        // for so many the first queue of a device has room,
constexpr uint32_t kTimesWhatThereIs = 2;  // and each further one for so many times as many as all before
constexpr uint32_t kMostSlots = 1 << 20;

// Interrupts of a device go to as many processors as it has vectors: completion queues take them in turn.
int next_vector(const ibv_context* device) {
  static std::atomic<uint32_t> next{0};
  return static_cast<int>(next.fetch_add(1, std::memory_order_relaxed) %
                          static_cast<uint32_t>(std::max(device->num_comp_vectors, 1)));
}

Status watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? Status::ok() : Status::system_error("epoll_ctl", errno);
}

}  // namespace

struct SharedQueues::Queue {
  std::shared_ptr<Channel> channel;
  CompletionQueue handle;
  device::Alarm alarm;  // nobody gets room on a queue that has failed
  uint32_t entries = 0;
  // The mutex.
  uint32_t taken = 0;          // entries; those given back count until they are free
  uint32_t given_back = 0;     // of these: free when the queue has been empty
  std::vector<uint32_t> tags;  // of the sessions that have room, each as often as it has
  bool is_broken = false;
  // The polling thread's.
  uint32_t to_free = 0;  // given back before this poll began
  Armed armed = Armed::kNot;
  bool may_have_fired = false;  // since it is armed
};

// --- set-up

Expected<std::shared_ptr<SharedQueues>> SharedQueues::make() {
  auto made = std::make_shared<SharedQueues>();
  auto notifier = Notifier::make();
  if (!notifier) return notifier.status();
  made->changed_ = notifier.value();
  made->epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!made->epoll_.is_open()) return Status::system_error("epoll_create1", errno);
  if (Status watched = watch(made->epoll_.get(), made->changed_->fd()); !watched) return watched;
  return made;
}

SharedQueues::~SharedQueues() = default;

Expected<std::shared_ptr<SetUp>> SharedQueues::set_up() {
  const std::scoped_lock held(mutex_);
  if (set_up_ != nullptr) return set_up_;
  auto there = SetUp::of_process();
  if (there) set_up_ = there.value();
  return there;
}

void SharedQueues::wait_for_set_up() {
  std::shared_ptr<SetUp> there;
  {
    const std::scoped_lock held(mutex_);
    there = set_up_;
  }
  if (there != nullptr) there->wait();
}

Expected<std::shared_ptr<ibv_td>> SharedQueues::thread_domain(const std::shared_ptr<Device>& device) {
  const std::scoped_lock alone(making_);
  auto channel = channel_of(device);
  if (!channel) return channel.status();
  return std::shared_ptr<ibv_td>(channel.value(), channel.value()->thread_domain.get());
}

SharedQueues::Room::~Room() {
  if (owner_ != nullptr) owner_->give_back(*queue_, entries_, tag_);
}

ibv_cq* SharedQueues::Room::queue() const {
  return queue_->handle.get();
}

Expected<SharedQueues::Room> SharedQueues::room(const std::shared_ptr<SharedQueues>& of,
                                                const std::shared_ptr<Device>& device, uint32_t entries, uint32_t tag) {
  Room room;
  const std::scoped_lock alone(of->making_);
  room.queue_ = of->take_room(*device, entries, tag);
  if (room.queue_ == nullptr) {
    auto made = of->make_queue(device, entries);
    if (!made) return made.status();
    room.queue_ = std::move(made.value());
    const std::scoped_lock held(of->mutex_);
    room.queue_->taken = entries;
    room.queue_->tags.push_back(tag);
    of->all_.push_back(room.queue_);
    of->changed();
  }
  room.owner_ = of;
  room.entries_ = entries;
  room.tag_ = tag;
  return room;
}

std::shared_ptr<SharedQueues::Queue> SharedQueues::take_room(const Device& device, uint32_t entries, uint32_t tag) {
  const std::scoped_lock held(mutex_);
  for (const auto& queue : all_) {
    if (queue->channel->device.get() != &device || queue->is_broken || !queue->alarm.status()) continue;
    if (queue->entries - queue->taken < entries) continue;
    queue->taken += entries;
    queue->tags.push_back(tag);
    return queue;
  }
  return nullptr;
}

Expected<std::shared_ptr<SharedQueues::Queue>> SharedQueues::make_queue(const std::shared_ptr<Device>& device,
                                                                        uint32_t entries) {
  const auto most = static_cast<uint32_t>(device->limits().max_cqe);
  if (entries > most) {
    return Status::error("the device's completion queues have " + std::to_string(most) +
                         " entries, too few for a queue pair");
  }
  auto channel = channel_of(device);
  if (!channel) return channel.status();
  auto queue = std::make_shared<Queue>();
  queue->channel = std::move(channel.value());
  uint32_t there_are = 0;
  {
    const std::scoped_lock held(mutex_);
    for (const auto& each : all_) there_are += each->channel == queue->channel ? each->entries : 0;
  }
  queue->entries = std::min(std::max(kFirstPairs * entries, kTimesWhatThereIs * there_are), most);
  const auto create = [&] {
    queue->handle.reset(::ibv_create_cq(device->context(), static_cast<int>(queue->entries), queue.get(),
                                        queue->channel->handle.get(), next_vector(device->context())));
    return queue->handle != nullptr;
  };
  if (!create() && queue->entries > entries) {
    queue->entries = entries;  // little memory may be pinned
    create();
  }
  if (queue->handle == nullptr) return verbs_error("cannot create a completion queue", errno);
  queue->alarm.begin(device, changed_);
  queue->alarm.watch(queue->handle.get());
  return queue;
}

Expected<std::shared_ptr<SharedQueues::Channel>> SharedQueues::channel_of(const std::shared_ptr<Device>& device) {
  {
    const std::scoped_lock held(mutex_);
    for (const auto& each : channels_) {
      if (auto there = each.lock(); there != nullptr && there->device == device) return there;
    }
  }
  auto made = std::make_shared<Channel>();
  made->device = device;
  made->handle.reset(::ibv_create_comp_channel(device->context()));
  if (made->handle == nullptr) return verbs_error("cannot create a completion channel", errno);
  if (Status done = unblock(made->handle->fd); !done) return done;
  if (Status watched = watch(epoll_.get(), made->handle->fd); !watched) return watched;
  ibv_td_init_attr plain{};
  made->thread_domain.reset(::ibv_alloc_td(device->context(), &plain));
  const std::scoped_lock held(mutex_);
  std::erase_if(channels_, [](const auto& each) { return each.expired(); });
  channels_.push_back(made);
  return made;
}

void SharedQueues::give_back(Queue& queue, uint32_t entries, uint32_t tag) {
  const std::scoped_lock held(mutex_);
  queue.given_back += entries;
  queue.tags.erase(std::ranges::find(queue.tags, tag));
  changed();
}

Expected<uint32_t> SharedQueues::enter(std::shared_ptr<Inbox> inbox) {
  const std::scoped_lock held(mutex_);
  if (free_slots_.empty()) {
    if (generations_.size() == kMostSlots) return Status::error("too many sessions in one thread");
    free_slots_.push_back(static_cast<uint32_t>(generations_.size()));
    generations_.push_back(0);
  }
  const uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  const uint32_t tag = slot << kGenerationBits | generations_[slot];
  entering_.emplace_back(tag, std::move(inbox));
  has_changed_.store(true, std::memory_order_release);  // looked at when its first completion comes
  return tag;
}

void SharedQueues::leave(uint32_t tag) {
  const std::scoped_lock held(mutex_);
  leaving_.push_back(tag);
  changed();
}

void SharedQueues::changed() {
  has_changed_.store(true, std::memory_order_release);
  changed_->notify();
}

// --- the polling thread: what others have changed

void SharedQueues::take_changes() {
  std::vector<std::shared_ptr<Queue>> unused;
  std::shared_ptr<SetUp> set_up;
  changed_->reset();
  {
    const std::scoped_lock held(mutex_);
    has_changed_.store(false, std::memory_order_relaxed);
    take_entering();
    take_leaving();
    for (const auto& queue : all_) queue->to_free += std::exchange(queue->given_back, 0);
    unused = take_unused();
    polled_.clear();
    std::ranges::copy_if(all_, std::back_inserter(polled_), [](const auto& each) { return !each->is_broken; });
    set_up = set_up_;
  }
  awaited_.clear();
  for (const auto& queue : polled_) {
    if (std::ranges::find(awaited_, queue->channel) == awaited_.end()) awaited_.push_back(queue->channel);
  }
  if (!unused.empty()) set_up->post([queues = std::move(unused)] {});  // they are destroyed there
}

void SharedQueues::take_entering() {
  for (auto& [tag, inbox] : entering_) {
    const uint32_t slot = tag >> kGenerationBits;
    if (slot >= places_.size()) places_.resize(slot + 1);
    places_[slot] = {.inbox = std::move(inbox), .generation = tag & ((1u << kGenerationBits) - 1)};
  }
  entering_.clear();
}

void SharedQueues::take_leaving() {
  for (const uint32_t tag : leaving_) {
    const uint32_t slot = tag >> kGenerationBits;
    places_[slot].inbox.reset();
    generations_[slot] = (generations_[slot] + 1) & ((1u << kGenerationBits) - 1);
    free_slots_.push_back(slot);
  }
  leaving_.clear();
}

// What nobody uses is kept, unless it is of no use any more, or there is another one.
bool SharedQueues::is_unused(const Queue& queue) const {
  if (!queue.tags.empty()) return false;
  if (queue.is_broken || !queue.alarm.status()) return true;  // or its device is gone
  return queue.taken == 0 && std::ranges::any_of(all_, [&](const auto& each) {
           return each.get() != &queue && each->channel == queue.channel && !each->is_broken;
         });
}

std::vector<std::shared_ptr<SharedQueues::Queue>> SharedQueues::take_unused() {
  std::vector<std::shared_ptr<Queue>> unused;
  for (size_t i = 0; i < all_.size();) {
    if (!is_unused(*all_[i])) {
      ++i;
      continue;
    }
    unused.push_back(std::move(all_[i]));
    all_.erase(all_.begin() + static_cast<ptrdiff_t>(i));
  }
  return unused;
}

// --- polling

bool SharedQueues::poll_all() {
  bool any = false;
  if (std::exchange(must_look_, false) || has_changed_.load(std::memory_order_acquire) || changed_->is_pending()) {
    take_changes();
    any = true;  // what was armed before knows nothing of them
  }
  for (const auto& queue : polled_) any |= poll(*queue);
  for (Inbox* const inbox : listed_) inbox->tell();
  listed_.clear();
  return any || must_look_;  // of which no event tells
}

bool SharedQueues::poll(Queue& queue) {
  std::array<ibv_wc, kPollBatch> batch;
  int found = 0;
  for (int count = kPollBatch; count == kPollBatch && found < kMostAtOnce; found += count) {
    count = ::ibv_poll_cq(queue.handle.get(), kPollBatch, batch.data());
    if (count < 0) {
      end_sessions(queue);
      return true;
    }
    queue.may_have_fired |= count > 0 && queue.armed == Armed::kForAny;
    for (const ibv_wc& completion : std::span(batch).first(static_cast<size_t>(count))) {
      queue.may_have_fired |= completion.status != IBV_WC_SUCCESS || kind_of(completion.wr_id) == WorkKind::kReceive;
      dispatch(completion);
    }
    if (count < kPollBatch && queue.to_free > 0) set_free(queue);
  }
  return found > 0;
}

void SharedQueues::dispatch(const ibv_wc& completion) {
  Inbox* const inbox = inbox_of(tag_of(completion.wr_id));
  if (inbox == nullptr) return;  // of a queue pair that is destroyed: some devices leave them in the queue
  const bool must_tell = inbox->put({.id = completion.wr_id,
                                     .status = completion.status,
                                     .opcode = completion.opcode,
                                     .immediate = completion.imm_data,
                                     .bytes = completion.byte_len});
  if (must_tell) listed_.push_back(inbox);
}

// Those who have left are taken at the beginning of a poll only: listed_ may have them.
Inbox* SharedQueues::inbox_of(uint32_t tag) {
  const uint32_t slot = tag >> kGenerationBits, generation = tag & ((1u << kGenerationBits) - 1);
  const auto is_there = [&] {
    return slot < places_.size() && places_[slot].inbox != nullptr && places_[slot].generation == generation;
  };
  if (is_there()) return places_[slot].inbox.get();
  if (!has_changed_.load(std::memory_order_acquire)) return nullptr;
  const std::scoped_lock held(mutex_);
  take_entering();
  return is_there() ? places_[slot].inbox.get() : nullptr;
}

// It was empty: nothing is in it any more of what was given back before.
void SharedQueues::set_free(Queue& queue) {
  const std::scoped_lock held(mutex_);
  queue.taken -= std::exchange(queue.to_free, 0);
  must_look_ |= queue.taken == 0;
}

// It cannot be polled or armed.
void SharedQueues::end_sessions(Queue& queue) {
  std::vector<uint32_t> tags;
  {
    const std::scoped_lock held(mutex_);
    queue.is_broken = true;
    tags = queue.tags;
    take_entering();
  }
  for (const uint32_t tag : tags) {
    if (Inbox* const inbox = inbox_of(tag)) {
      const bool must_tell = inbox->put({.id = work_id(WorkKind::kSend, tag, 0, 0), .status = IBV_WC_GENERAL_ERR});
      if (must_tell) listed_.push_back(inbox);
    }
  }
  must_look_ = true;  // it is not polled again
}

// --- sleeping

// One event a time: while there are more, the descriptor stays readable.
void SharedQueues::ready() {
  if (changed_->is_pending()) return;  // that is why; if not alone, it stays readable
  for (const auto& channel : awaited_) take_event(*channel);
}

// What has fired must be armed anew. Its event is taken first, if it has come: else it wakes us once in vain.
void SharedQueues::arm_all() {
  const bool any = wants_any_.load(std::memory_order_relaxed) > 0;
  for (const auto& channel : awaited_) {
    while (has_fired(*channel) && take_event(*channel)) {
    }
  }
  for (const auto& queue : polled_) arm(*queue, any);
}

bool SharedQueues::has_fired(const Channel& channel) const {
  return std::ranges::any_of(polled_, [&](const auto& each) {
    return each->channel.get() == &channel && each->armed != Armed::kNot && each->may_have_fired;
  });
}

// False: there is none.
bool SharedQueues::take_event(const Channel& channel) {
  ibv_cq* handle = nullptr;
  void* context = nullptr;
  if (::ibv_get_cq_event(channel.handle.get(), &handle, &context) != 0) return false;
  static_cast<Queue*>(context)->armed = Armed::kNot;
  ::ibv_ack_cq_events(handle, 1);  // whoever destroys the queue waits for this
  return true;
}

void SharedQueues::arm(Queue& queue, bool any) {
  any |= !queue.channel->solicits;
  const Armed wanted = any ? Armed::kForAny : Armed::kForSolicited;
  if (queue.armed < wanted || queue.may_have_fired) ask_for_events(queue, any);
}

// A device that does not know solicited events tells of all.
void SharedQueues::ask_for_events(Queue& queue, bool any) {
  if (!any && ::ibv_req_notify_cq(queue.handle.get(), 1) != 0) {
    queue.channel->solicits = false;
    any = true;
  }
  queue.armed = any ? Armed::kForAny : Armed::kForSolicited;
  queue.may_have_fired = false;
  if (any && ::ibv_req_notify_cq(queue.handle.get(), 0) != 0) end_sessions(queue);
}

}  // namespace egret::transport::verbs

namespace egret::transport {

base::Expected<std::unique_ptr<PollGroup>> verbs_poll_group() {
  auto queues = verbs::SharedQueues::make();
  if (!queues) return queues.status();
  return std::unique_ptr<PollGroup>(std::make_unique<verbs::QueueGroup>(std::move(queues.value())));
}

}  // namespace egret::transport
