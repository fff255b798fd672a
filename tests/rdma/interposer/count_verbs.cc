// libegret_count_verbs.so, for LD_PRELOAD: counts the verbs of a process that knows nothing of it, and makes some fail.
//
//   EGRET_COUNT_VERBS_FILE   where the counters are mapped (counter_file.h); "%p" becomes the process id
//   EGRET_VERBS_FAIL, EGRET_VERBS_SLOW   which calls fail, which take longer (fail_plan.h)
//   EGRET_VERBS_TEAR, EGRET_VERBS_SWALLOW   which verbs take place in pieces, or not at all (tear_plan.h)
//   EGRET_VERBS_WITHHOLD, EGRET_VERBS_SPURIOUS   completions that are told later, events of none (completion_plan.h)
//   EGRET_VERBS_HIDE         what the device is to lack (fail_plan.h)
//   EGRET_VERBS_LIMIT, EGRET_VERBS_HAVE   what it gives at most, and has besides (limits.h)
//   EGRET_VERBS_YIELD        if set, a poll that finds nothing gives the processor away: in a guest with fewer
//                            processors than threads that poll, their progress then does not depend on time slices
//
// ibv_post_send, ibv_post_recv, ibv_poll_cq and ibv_req_notify_cq are inline functions that call through the context's
// table, so there is no symbol to take the place of. But contexts are handed out by exported functions, also to
// librdmacm, and whoever gets one from here gets a table with our functions in it:
//
//   ibv_open_device ─▶ context->ops.post_send … = ours ─▶ the application, librdmacm
//   post_send ─▶ count ─▶ the provider's, kept for each context
//
// Extended queue pairs with functions of their own (ibv_wr_*) and extended completion queues pass this by. They are not
// counted but that they exist is: `uncounted`. A test requires it to be 0.
//
// Threads: any. Every original is called exactly once, with the caller's arguments, but for what is torn or swallowed.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "async_events.h"
#include "completion_plan.h"
#include "counter_file.h"
#include "fail_plan.h"
#include "limits.h"
#include "pieces.h"
#include "queue_pairs.h"
#include "tear_plan.h"

// In the header these are macros that choose among the functions below.
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define EGRET_EXPORT extern "C" __attribute__((visibility("default")))

namespace egret::interposer {
namespace {

// The function of that name and version in the library that we stand before. By version: without one, dlsym gives
// some symbols in their form of 2006.
template <typename Function>
Function* original(const char* name, const char* version) {
  void* const found = dlvsym(RTLD_NEXT, name, version);
  if (found == nullptr) {
    std::fprintf(stderr, "libegret_count_verbs: no %s@%s behind this library\n", name, version);
    _exit(70);
  }
  return reinterpret_cast<Function*>(found);
}

// --- what the application calls through a context

struct Provider {
  ibv_context_ops ops{};
  decltype(verbs_context::create_qp_ex) create_qp_ex = nullptr;
  decltype(verbs_context::create_cq_ex) create_cq_ex = nullptr;
};

struct Providers {
  std::shared_mutex mutex;
  std::map<const ibv_context*, Provider> of;
};
Providers& providers() {
  static auto* const instance = new Providers;
  return *instance;
}
// Stays where it is until the context is closed.
const Provider& provider_of(const ibv_context* context) {
  const std::shared_lock held(providers().mutex);
  return providers().of.at(context);
}

// What the plan says is to be other than the application wants it, while it is posted: the list is the application's.
class Changed {
 public:
  explicit Changed(ibv_send_wr* list) : list_(list) { apply(true); }
  ~Changed() { apply(false); }
  Changed(const Changed&) = delete;
  Changed& operator=(const Changed&) = delete;

 private:
  static bool is_concerned(const ibv_send_wr& work) {
    switch (work.opcode) {
      case IBV_WR_ATOMIC_CMP_AND_SWP:
      case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return must_fail(Call::kChangeAtomic);
      case IBV_WR_SEND_WITH_IMM:
        return must_fail(Call::kChangeSend);
      default:
        return false;
    }
  }
  static void change(ibv_send_wr& work, uint64_t by) {
    if (work.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) work.wr.atomic.swap += by;
    if (work.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) work.wr.atomic.compare_add += by;
    if (work.opcode == IBV_WR_SEND_WITH_IMM) work.imm_data ^= htonl(1);
  }
  void apply(bool there) {
    if (there) {
      for (ibv_send_wr* work = list_; work != nullptr; work = work->next) {
        if (is_concerned(*work)) changed_.push_back(work);
      }
    }
    for (ibv_send_wr* work : changed_) change(*work, there ? 1 : ~uint64_t{0});
  }

  ibv_send_wr* const list_;
  std::vector<ibv_send_wr*> changed_;
};

int post_send(ibv_qp* qp, ibv_send_wr* list, ibv_send_wr** bad) {
  if (must_fail(Call::kPostSend)) {
    *bad = list;
    return ENOMEM;
  }
  const Changed changed(list);
  const auto pair = queue_pair(qp);
  const auto provider = provider_of(qp->context).ops.post_send;
  if (is_posting_planned()) {
    count(Counter::kDoorbells);
    return post_by_plan(*pair, provider, list, bad);
  }
  const auto held = pair->lock();
  const int error = provider(qp, list, bad);
  // Beside its verbs: whoever reads the counts while the provider is at work sees neither.
  count(Counter::kDoorbells);
  pair->posted(list, error == 0 ? nullptr : *bad);
  note_posted(qp);
  return error;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* list, ibv_recv_wr** bad) {
  if (must_fail(Call::kPostRecv)) {
    *bad = list;
    return ENOMEM;
  }
  uint64_t posted = 0;
  for (const ibv_recv_wr* work = list; work != nullptr; work = work->next) ++posted;
  const int error = provider_of(qp->context).ops.post_recv(qp, list, bad);
  if (error != 0) {
    for (const ibv_recv_wr* work = *bad; work != nullptr; work = work->next) --posted;
  }
  count_of(qp->qp_type, Counter::kRecv, posted);
  count(Counter::kRecvDoorbells);
  return error;
}

void fail_on_purpose(ibv_wc& completion, QueuePair& pair) {
  completion.status = IBV_WC_GENERAL_ERR;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  original<int(ibv_qp*, ibv_qp_attr*, int)>("ibv_modify_qp", "IBVERBS_1.1")(pair.handle(), &attributes, IBV_QP_STATE);
}

// False: it is of a piece, and not for the program.
bool take_completion(const ibv_context* context, ibv_wc& completion) {
  const auto pair = queue_pair_by_number(context, completion.qp_num);
  if (is_posting_planned() && pair != nullptr && !pair->show(completion)) return false;
  const bool succeeded = completion.status == IBV_WC_SUCCESS;
  if (succeeded && pair != nullptr && must_fail(Call::kCompletion)) fail_on_purpose(completion, *pair);
  if (completion.status != IBV_WC_SUCCESS) {
    count(Counter::kFailedCompletions);
    if (pair != nullptr) pair->failed();
  } else if (completion.opcode & IBV_WC_RECV) {
    count(Counter::kRecvCompletions);
  } else {
    count(Counter::kSendCompletions);
    if (pair != nullptr) pair->completed();
  }
  return true;
}

bool yields_when_idle() {
  static const bool wanted = std::getenv("EGRET_VERBS_YIELD") != nullptr;
  return wanted;
}

bool flushes_are_hidden() {
  static const bool hidden = is_hidden("flushes");
  return hidden;
}

int poll_cq(ibv_cq* cq, int most, ibv_wc* completions) {
  if (must_fail(Call::kPollCq)) return -1;
  const auto provider = provider_of(cq->context).ops.poll_cq;
  const int found = bring(cq, most, completions, [&](int room, ibv_wc* into) { return provider(cq, room, into); });
  count(Counter::kPolls);
  if (found <= 0) {
    count(Counter::kEmptyPolls);
    if (yields_when_idle()) sched_yield();
  }
  int shown = 0;
  for (int i = 0; i < found; ++i) {
    if (completions[i].status == IBV_WC_WR_FLUSH_ERR && flushes_are_hidden()) continue;
    if (take_completion(cq->context, completions[i])) completions[shown++] = completions[i];
  }
  return found < 0 ? found : shown;
}

// What a device is asked for where verbs may become several work requests each; at most `most`.
uint32_t with_room(uint32_t asked, int ibv_device_attr::*most, ibv_context* context) {
  if (works_of_a_verb() == 1) return asked;
  ibv_device_attr limits{};
  using Query = int(ibv_context*, ibv_device_attr*);
  if (original<Query>("ibv_query_device", "IBVERBS_1.1")(context, &limits) != 0) return asked;
  const uint64_t wanted = uint64_t{asked} * works_of_a_verb();
  return std::max(asked, static_cast<uint32_t>(std::min<uint64_t>(wanted, static_cast<uint32_t>(limits.*most))));
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  if (must_fail(Call::kReqNotifyCq)) return ENOMEM;
  if (solicited_only != 0 && !are_solicited_events_within_limits()) return EOPNOTSUPP;
  count(Counter::kArms);
  if (solicited_only != 0) count(Counter::kSolicitedArms);
  const int error = provider_of(cq->context).ops.req_notify_cq(cq, solicited_only);
  if (error == 0) asked(cq);
  return error;
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes) {
  if (must_fail(Call::kCreateQp)) {
    errno = ENOMEM;
    return nullptr;
  }
  const uint32_t asked = attributes->cap.max_send_wr;
  attributes->cap.max_send_wr = with_room(asked, &ibv_device_attr::max_qp_wr, context);
  ibv_qp* const qp = provider_of(context).create_qp_ex(context, attributes);
  if (works_of_a_verb() > 1) attributes->cap.max_send_wr = asked;
  if (qp == nullptr) return nullptr;
  if (attributes->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) count(Counter::kUncounted);
  add_queue_pair(qp, attributes->sq_sig_all != 0);
  return qp;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
  ibv_cq_ex* const cq = provider_of(context).create_cq_ex(context, attributes);
  if (cq != nullptr) count(Counter::kUncounted);
  return cq;
}

ibv_context* with_our_table(ibv_context* context) {
  if (context == nullptr) return nullptr;
  Provider provider{.ops = context->ops};
  if (verbs_context* const extended = __extension__ verbs_get_ctx_op(context, create_qp_ex); extended != nullptr) {
    provider.create_qp_ex = extended->create_qp_ex;
    extended->create_qp_ex = create_qp_ex;
  }
  if (verbs_context* const extended = __extension__ verbs_get_ctx_op(context, create_cq_ex); extended != nullptr) {
    provider.create_cq_ex = extended->create_cq_ex;
    extended->create_cq_ex = create_cq_ex;
  }
  if (verbs_context* const extended = __extension__ verbs_get_ctx_op(context, alloc_parent_domain);
      extended != nullptr) {
    add_capabilities(*extended, *context);
  }
  context->ops.post_send = post_send;
  context->ops.post_recv = post_recv;
  context->ops.poll_cq = poll_cq;
  context->ops.req_notify_cq = req_notify_cq;
  hear_async_events(context);
  const std::unique_lock held(providers().mutex);
  providers().of[context] = provider;
  return context;
}

// --- registrations

struct Registrations {
  std::mutex mutex;
  std::map<const ibv_mr*, uint32_t> listed_as;
};
Registrations& registrations() {
  static auto* const instance = new Registrations;
  return *instance;
}

// The library's own functions call each other by their exported names: only the outermost call is the application's.
thread_local int t_depth = 0;
class Outermost {
 public:
  Outermost() { ++t_depth; }
  ~Outermost() { --t_depth; }
  Outermost(const Outermost&) = delete;
  Outermost& operator=(const Outermost&) = delete;
  explicit operator bool() const { return t_depth == 1; }
};

void note(const ibv_mr* mr, const void* address, size_t length, unsigned access) {
  const auto at = reinterpret_cast<uint64_t>(address);
  if (mr == nullptr) {
    note_registered(at, length, access, 0, RegistrationState::kFailed);
    return;
  }
  count(Counter::kRegistrations);
  count(Counter::kRegisteredBytes, length);
  if (access & IBV_ACCESS_REMOTE_WRITE) count(Counter::kRemoteWritable);
  if (access & IBV_ACCESS_REMOTE_READ) count(Counter::kRemoteReadable);
  if (access & IBV_ACCESS_RELAXED_ORDERING) count(Counter::kRelaxedOrdering);
  const std::unique_lock held(registrations().mutex);
  registrations().listed_as[mr] = note_registered(at, length, access, mr->rkey, RegistrationState::kRegistered);
}

template <typename Register>
ibv_mr* registered(const void* address, size_t length, unsigned access, const Register& call) {
  const Outermost outermost;
  if (!outermost) return call();
  ibv_mr* mr = nullptr;
  if (must_fail(Call::kRegMr)) {
    errno = ENOMEM;
  } else {
    mr = call();
  }
  const int error = errno;
  note(mr, address, length, access);
  errno = error;
  return mr;
}

}  // namespace
}  // namespace egret::interposer

using namespace egret::interposer;  // NOLINT(google-build-using-namespace): what follows is C's namespace

EGRET_EXPORT ibv_context* ibv_open_device(ibv_device* device) {
  if (must_fail(Call::kOpenDevice)) {
    errno = ENOMEM;
    return nullptr;
  }
  return with_our_table(original<ibv_context*(ibv_device*)>("ibv_open_device", "IBVERBS_1.1")(device));
}

EGRET_EXPORT ibv_context* ibv_import_device(int fd) {
  return with_our_table(original<ibv_context*(int)>("ibv_import_device", "IBVERBS_1.10")(fd));
}

EGRET_EXPORT int ibv_close_device(ibv_context* context) {
  forget_async_events(context);
  {
    const std::unique_lock held(providers().mutex);
    providers().of.erase(context);
  }
  return original<int(ibv_context*)>("ibv_close_device", "IBVERBS_1.1")(context);
}

EGRET_EXPORT int epoll_wait(int epoll, epoll_event* events, int most, int timeout_ms) {
  if (timeout_ms != 0) count(Counter::kSleeps);
  return ::epoll_pwait(epoll, events, most, timeout_ms, nullptr);
}

EGRET_EXPORT ibv_pd* ibv_alloc_pd(ibv_context* context) {
  if (must_fail(Call::kAllocPd)) {
    errno = ENOMEM;
    return nullptr;
  }
  return original<ibv_pd*(ibv_context*)>("ibv_alloc_pd", "IBVERBS_1.1")(context);
}

EGRET_EXPORT int ibv_dealloc_pd(ibv_pd* domain) {
  if (free_thread_domain(domain)) return 0;
  return original<int(ibv_pd*)>("ibv_dealloc_pd", "IBVERBS_1.1")(domain);
}

EGRET_EXPORT int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) {
  if (must_fail(Call::kQueryDevice)) return ENOMEM;
  const int error =
      original<int(ibv_context*, ibv_device_attr*)>("ibv_query_device", "IBVERBS_1.1")(context, attributes);
  if (error == 0) limit_attributes(*attributes);
  if (error == 0 && is_hidden("atomics")) attributes->atomic_cap = IBV_ATOMIC_NONE;
  return error;
}

EGRET_EXPORT ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  if (must_fail(Call::kCreateCompChannel)) {
    errno = ENOMEM;
    return nullptr;
  }
  count(Counter::kCompletionChannels);
  ibv_comp_channel* const made =
      original<ibv_comp_channel*(ibv_context*)>("ibv_create_comp_channel", "IBVERBS_1.0")(context);
  if (made != nullptr) watch_channel(made);
  return made;
}

EGRET_EXPORT int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  count(Counter::kCompletionChannelsDestroyed);
  forget_channel(channel);
  return original<int(ibv_comp_channel*)>("ibv_destroy_comp_channel", "IBVERBS_1.0")(channel);
}

EGRET_EXPORT int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void** context) {
  if (must_fail(Call::kGetCqEvent)) {
    errno = EAGAIN;
    return -1;
  }
  if (ibv_cq* const spurious = take_spurious_event(channel); spurious != nullptr) {
    *queue = spurious;
    *context = spurious->cq_context;
    return 0;
  }
  using Get = int(ibv_comp_channel*, ibv_cq**, void**);
  const DeviceDescriptor there(channel);
  const int failed = original<Get>("ibv_get_cq_event", "IBVERBS_1.1")(channel, queue, context);
  count(Counter::kEventReads);
  if (failed == 0) count(Counter::kCompletionEvents);
  return failed;
}

EGRET_EXPORT void ibv_ack_cq_events(ibv_cq* queue, unsigned events) {
  if (const unsigned of_device = events_of_device(queue, events); of_device > 0)
    original<void(ibv_cq*, unsigned)>("ibv_ack_cq_events", "IBVERBS_1.1")(queue, of_device);
}

EGRET_EXPORT ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* owner, ibv_comp_channel* channel,
                                   int vector) {
  if (must_fail(Call::kCreateCq)) {
    errno = ENOMEM;
    return nullptr;
  }
  if (!is_completion_queue_within_limits(entries)) {
    errno = EINVAL;
    return nullptr;
  }
  count(Counter::kCompletionEntries, static_cast<uint64_t>(entries));
  count_most(Counter::kCompletionVector, static_cast<uint64_t>(vector));
  entries = static_cast<int>(with_room(static_cast<uint32_t>(entries), &ibv_device_attr::max_cqe, context));
  using Create = ibv_cq*(ibv_context*, int, void*, ibv_comp_channel*, int);
  const DeviceDescriptor there(channel);
  ibv_cq* const made = original<Create>("ibv_create_cq", "IBVERBS_1.1")(context, entries, owner, channel, vector);
  if (made != nullptr) count(Counter::kCompletionQueues);
  return made;
}

EGRET_EXPORT int ibv_resize_cq(ibv_cq* queue, int entries) {
  if (must_fail(Call::kResizeCq)) return EOPNOTSUPP;
  if (!is_completion_queue_within_limits(entries)) return EINVAL;
  count(Counter::kCompletionEntries, static_cast<uint64_t>(entries));
  entries = static_cast<int>(with_room(static_cast<uint32_t>(entries), &ibv_device_attr::max_cqe, queue->context));
  return original<int(ibv_cq*, int)>("ibv_resize_cq", "IBVERBS_1.1")(queue, entries);
}

EGRET_EXPORT ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* attributes) {
  if (must_fail(Call::kCreateQp)) {
    errno = ENOMEM;
    return nullptr;
  }
  if (attributes->qp_type == IBV_QPT_UD && is_hidden("ud")) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  if (!is_within_limits(attributes->cap)) {
    errno = EINVAL;
    return nullptr;
  }
  const bool signals_all = attributes->sq_sig_all != 0;
  const uint32_t asked = attributes->cap.max_send_wr;
  attributes->cap.max_send_wr = with_room(asked, &ibv_device_attr::max_qp_wr, domain->context);
  ibv_pd* const known = behind_thread_domain(domain);
  if (known != domain) count(Counter::kThreadPairs);
  ibv_qp* const qp = original<ibv_qp*(ibv_pd*, ibv_qp_init_attr*)>("ibv_create_qp", "IBVERBS_1.1")(known, attributes);
  if (qp != nullptr) limit_made(attributes->cap);
  if (works_of_a_verb() > 1) attributes->cap.max_send_wr = asked;
  if (qp != nullptr) add_queue_pair(qp, signals_all);
  return qp;
}

EGRET_EXPORT int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  if (must_fail(Call::kModifyQp)) return ENOMEM;
  return original<int(ibv_qp*, ibv_qp_attr*, int)>("ibv_modify_qp", "IBVERBS_1.1")(qp, attributes, mask);
}

EGRET_EXPORT int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask, ibv_qp_init_attr* made) {
  if (must_fail(Call::kQueryQp)) return ENOMEM;
  using Query = int(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*);
  return original<Query>("ibv_query_qp", "IBVERBS_1.1")(qp, attributes, mask, made);
}

EGRET_EXPORT int ibv_destroy_qp(ibv_qp* qp) {
  be_slow(Call::kDestroyQp);
  remove_queue_pair(qp);  // first: its address and number may belong to the next one as soon as it is gone
  return original<int(ibv_qp*)>("ibv_destroy_qp", "IBVERBS_1.1")(qp);
}

EGRET_EXPORT ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, size_t length, int access) {
  return registered(address, length, static_cast<unsigned>(access), [&] {
    using Register = ibv_mr*(ibv_pd*, void*, size_t, int);
    return original<Register>("ibv_reg_mr", "IBVERBS_1.1")(domain, address, length, access);
  });
}

EGRET_EXPORT ibv_mr* ibv_reg_mr_iova(ibv_pd* domain, void* address, size_t length, uint64_t iova, int access) {
  return registered(address, length, static_cast<unsigned>(access), [&] {
    using Register = ibv_mr*(ibv_pd*, void*, size_t, uint64_t, int);
    return original<Register>("ibv_reg_mr_iova", "IBVERBS_1.7")(domain, address, length, iova, access);
  });
}

EGRET_EXPORT ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, size_t length, uint64_t iova, unsigned access) {
  return registered(address, length, access, [&] {
    using Register = ibv_mr*(ibv_pd*, void*, size_t, uint64_t, unsigned);
    return original<Register>("ibv_reg_mr_iova2", "IBVERBS_1.8")(domain, address, length, iova, access);
  });
}

EGRET_EXPORT ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* domain, uint64_t offset, size_t length, uint64_t iova, int fd,
                                       int access) {
  return registered(nullptr, length, static_cast<unsigned>(access), [&] {
    using Register = ibv_mr*(ibv_pd*, uint64_t, size_t, uint64_t, int, int);
    return original<Register>("ibv_reg_dmabuf_mr", "IBVERBS_1.12")(domain, offset, length, iova, fd, access);
  });
}

// May change the rights of what has been registered, which the list would not show.
EGRET_EXPORT int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* domain, void* address, size_t length, int access) {
  count(Counter::kUncounted);
  using Register = int(ibv_mr*, int, ibv_pd*, void*, size_t, int);
  return original<Register>("ibv_rereg_mr", "IBVERBS_1.1")(mr, flags, domain, address, length, access);
}

EGRET_EXPORT int ibv_destroy_cq(ibv_cq* queue) {
  be_slow(Call::kDestroyCq);
  count(Counter::kCompletionQueuesDestroyed);
  forget_queue(queue);
  return original<int(ibv_cq*)>("ibv_destroy_cq", "IBVERBS_1.1")(queue);
}

EGRET_EXPORT int ibv_dereg_mr(ibv_mr* mr) {
  be_slow(Call::kDeregMr);
  {
    const std::unique_lock held(registrations().mutex);
    if (const auto listed = registrations().listed_as.find(mr); listed != registrations().listed_as.end()) {
      note_deregistered(listed->second);
      registrations().listed_as.erase(listed);
    }
  }
  count(Counter::kDeregistrations);
  return original<int(ibv_mr*)>("ibv_dereg_mr", "IBVERBS_1.1")(mr);
}
