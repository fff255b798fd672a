#include "limits.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <unistd.h>

#include "counter_file.h"

namespace egret::interposer {
namespace {

enum Limit : uint32_t { kReadAtomic, kInline, kQueue, kCqe, kSolicited, kLimits };
constexpr std::array<std::string_view, kLimits> kNames = {"rd_atomic", "inline", "queue", "cqe", "solicited"};
constexpr int64_t kNone = -1;

using Limits = std::array<int64_t, kLimits>;

void read_entry(std::string_view entry, Limits& limits) {
  const size_t colon = std::min(entry.find(':'), entry.size());
  const auto* const name = std::ranges::find(kNames, entry.substr(0, colon));
  const std::string_view number = entry.substr(std::min(colon + 1, entry.size()));
  int64_t value = kNone;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (name == kNames.end() || error != std::errc() || end != number.data() + number.size() || value < 0) {
    std::fprintf(stderr, "libegret_count_verbs: EGRET_VERBS_LIMIT: '%.*s' is not LIMIT:N with a known LIMIT\n",
                 static_cast<int>(entry.size()), entry.data());
    _exit(70);
  }
  limits[static_cast<size_t>(name - kNames.begin())] = value;
}

const Limits& limits() {
  static const Limits read = [] {
    Limits found;
    found.fill(kNone);
    const char* const wanted = std::getenv("EGRET_VERBS_LIMIT");
    std::string_view rest = wanted == nullptr ? "" : wanted;
    while (!rest.empty()) {
      const size_t comma = rest.find(',');
      read_entry(rest.substr(0, comma), found);
      rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    }
    return found;
  }();
  return read;
}

bool allows(Limit limit, uint64_t asked) {
  const int64_t most = limits()[limit];
  if (most == kNone || asked <= static_cast<uint64_t>(most)) return true;
  count(Counter::kRefusedByLimits);
  return false;
}

template <typename Number>
void lower(Number& number, Limit limit) {
  if (limits()[limit] != kNone) number = std::min(number, static_cast<Number>(limits()[limit]));
}

bool has(const char* capability) {
  const char* const wanted = std::getenv("EGRET_VERBS_HAVE");
  if (wanted == nullptr) return false;
  return ("," + std::string(wanted) + ",").find("," + std::string(capability) + ",") != std::string::npos;
}

// --- thread domains. Another domain of the same number in the kernel: that is what providers make.

struct ThreadDomain {
  ibv_td handle{};
};
struct ParentDomain {
  ibv_pd handle{};
  ibv_pd* behind = nullptr;
  ParentDomain* next = nullptr;
};
// Those there are; few, and of a test.
struct Parents {
  std::atomic_flag lock = ATOMIC_FLAG_INIT;
  ParentDomain* first = nullptr;
};
Parents& parents() {
  static auto* const instance = new Parents;
  return *instance;
}
class Locked {
 public:
  Locked() {
    while (parents().lock.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~Locked() { parents().lock.clear(std::memory_order_release); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
};

ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr*) {
  auto* const made = new ThreadDomain;
  made->handle.context = context;
  return &made->handle;
}

int dealloc_td(ibv_td* domain) {
  delete reinterpret_cast<ThreadDomain*>(domain);
  return 0;
}

ibv_pd* alloc_parent_domain(ibv_context*, ibv_parent_domain_init_attr* wanted) {
  auto* const made = new ParentDomain;
  made->handle = *wanted->pd;
  made->behind = wanted->pd;
  const Locked held;
  made->next = parents().first;
  parents().first = made;
  count(Counter::kThreadDomains);
  return &made->handle;
}

}  // namespace

void limit_attributes(ibv_device_attr& attributes) {
  lower(attributes.max_qp_rd_atom, kReadAtomic);
  lower(attributes.max_qp_init_rd_atom, kReadAtomic);
  lower(attributes.max_qp_wr, kQueue);
  lower(attributes.max_cqe, kCqe);
}

bool is_within_limits(const ibv_qp_cap& asked) {
  return allows(kInline, asked.max_inline_data) && allows(kQueue, asked.max_send_wr) &&
         allows(kQueue, asked.max_recv_wr);
}

void limit_made(ibv_qp_cap& made) {
  lower(made.max_inline_data, kInline);
}

bool is_completion_queue_within_limits(int entries) {
  return allows(kCqe, static_cast<uint64_t>(entries));
}

bool are_solicited_events_within_limits() {
  return allows(kSolicited, 1);
}

void add_capabilities(verbs_context& extended, ibv_context& context) {
  if (has("iwarp")) context.device->transport_type = IBV_TRANSPORT_IWARP;
  if (!has("thread_domains")) return;
  extended.alloc_td = alloc_td;
  extended.dealloc_td = dealloc_td;
  extended.alloc_parent_domain = alloc_parent_domain;
}

ibv_pd* behind_thread_domain(ibv_pd* domain) {
  const Locked held;
  for (const ParentDomain* each = parents().first; each != nullptr; each = each->next) {
    if (&each->handle == domain) return each->behind;
  }
  return domain;
}

bool free_thread_domain(ibv_pd* domain) {
  const Locked held;
  for (ParentDomain** each = &parents().first; *each != nullptr; each = &(*each)->next) {
    if (&(*each)->handle != domain) continue;
    ParentDomain* const gone = *each;
    *each = gone->next;
    delete gone;
    return true;
  }
  return false;
}

}  // namespace egret::interposer
