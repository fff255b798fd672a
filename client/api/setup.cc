// Options, pools and clients.
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/text.h"
#include "client/api/boundary.h"
#include "client/api/handles.h"
#include "client/egret.h"

namespace {

using namespace egret::client;

// The clients of egret_client_mine(), of one thread.
class Mine {
 public:
  ~Mine() {
    for (const Entry& entry : entries_) egret_client_free(entry.client);
  }
  egret_client* of(egret_pool& pool) {
    for (Entry& entry : entries_) {
      if (entry.pool != pool.state->number) continue;
      const bool is_parents = entry.client->generation != ForkGuard::generation();
      if (!is_parents && !entry.client->is_broken) return entry.client;
      egret_client_free(std::exchange(entry.client, nullptr));
      if (egret_client_new(&pool, &entry.client) == EGRET_OK) return entry.client;
      std::erase_if(entries_, [](const Entry& each) { return each.client == nullptr; });
      return nullptr;
    }
    egret_client* made = nullptr;
    entries_.reserve(entries_.size() + 1);
    if (egret_client_new(&pool, &made) != EGRET_OK) return nullptr;
    entries_.push_back({pool.state->number, made});
    return made;
  }

 private:
  struct Entry {
    uint64_t pool;
    egret_client* client;
  };
  std::vector<Entry> entries_;
};

thread_local Mine mine;

int fail(egret_options& options, const egret::base::Status& status) {
  if (status) return EGRET_OK;
  options.error = status.message();
  return EGRET_E_ARGUMENT;
}

// Why there is no pool: to be read from the options, or from the log if there are none.
int refuse_pool(egret_options* options, const egret::base::Status& why) {
  if (options != nullptr) return fail(*options, why);
  write_line(kErrorLevel, why.message());
  return EGRET_E_ARGUMENT;
}

bool is_key(const char* key, size_t key_length) {
  return key != nullptr && key_length >= 1 && key_length <= egret::op::kMaxKeyLength;
}

}  // namespace

egret_client::egret_client(std::shared_ptr<const PoolState> of)
    : pool(std::move(of)),
      owner(this_thread()),
      generation(ForkGuard::generation()),
      buffers(new Buffers(this_thread())),
      queue(std::make_unique<Queue>(*buffers)),
      engine(std::make_unique<Engine>(pool->settings, clock, [state = pool](const egret::pool::Placement& placement) {
        state->placement.store(std::make_shared<const egret::pool::Placement>(placement));
      })) {}

extern "C" {

const char* egret_version(void) {
  return EGRET_VERSION;
}

const char* egret_text(int code) {
  switch (code) {
    case EGRET_OK:
      return "ok";
    case EGRET_HIT:
      return "hit";
    case EGRET_MISS:
      return "miss";
    case EGRET_STORED:
      return "stored";
    case EGRET_NOT_STORED:
      return "not stored";
    case EGRET_EXISTS:
      return "exists";
    case EGRET_DELETED:
      return "deleted";
    case EGRET_NUMBER:
      return "number";
    case EGRET_NON_NUMERIC:
      return "the value is no number";
    case EGRET_TOO_LARGE:
      return "too large";
    case EGRET_OUT_OF_MEMORY:
      return "the backend is out of memory";
    case EGRET_E_ARGUMENT:
      return "a wrong argument";
    case EGRET_E_MEMORY:
      return "out of memory";
    case EGRET_E_AGAIN:
      return "not now, try again";
    case EGRET_E_UNAVAILABLE:
      return "the backend cannot be reached, and nothing was done";
    case EGRET_E_UNKNOWN:
      return "no answer: it may have been done";
    case EGRET_E_DENIED:
      return "the backend does not allow it";
    case EGRET_E_UNSUPPORTED:
      return "the backend does not know it";
    case EGRET_E_FORKED:
      return "the client is the parent process's";
    case EGRET_E_THREAD:
      return "the client is another thread's, or in a call";
    case EGRET_E_BROKEN:
      return "libegret has failed inside";
    default:
      return "unknown";
  }
}

egret_options* egret_options_new(void) {
  egret_options* made = nullptr;
  enter_without_client([&] {
    set_up_process();
    made = new egret_options;
    return EGRET_OK;
  });
  return made;
}

int egret_options_set(egret_options* options, const char* name, const char* value) {
  if (options == nullptr || name == nullptr || value == nullptr) return EGRET_E_ARGUMENT;
  return enter_without_client([&] { return fail(*options, options->given.set(name, value)); });
}

int egret_options_load(egret_options* options, const char* file) {
  if (options == nullptr || file == nullptr) return EGRET_E_ARGUMENT;
  return enter_without_client([&] { return fail(*options, options->given.load(file)); });
}

const char* egret_options_error(const egret_options* options) {
  return options != nullptr ? options->error.c_str() : "";
}

void egret_options_free(egret_options* options) {
  delete options;
}

int egret_pool_open(egret_options* options, egret_pool** pool) {
  if (pool == nullptr) return EGRET_E_ARGUMENT;
  *pool = nullptr;
  return enter_without_client([&] {
    set_up_process();
    auto given = options != nullptr ? egret::base::Expected<GivenOptions>(options->given) : default_options();
    if (!given) return refuse_pool(options, given.status());
    auto settings = given.value().resolve();
    if (!settings) return refuse_pool(options, settings.status());
    static std::atomic<uint64_t> last_number{0};
    auto state = std::make_shared<PoolState>();
    state->settings = std::move(settings.value());
    if (!state->settings.members.empty()) {
      state->placement.store(
          std::make_shared<const egret::pool::Placement>(state->settings.placement, state->settings.members));
    }
    state->number = ++last_number;
    auto made = std::make_unique<egret_pool>();
    made->state = std::move(state);
    *pool = made.release();
    return int{EGRET_OK};
  });
}

void egret_pool_close(egret_pool* pool) {
  delete pool;
}

int egret_pool_server_of(const egret_pool* pool, const char* key, size_t key_length) {
  if (pool == nullptr || !is_key(key, key_length)) return EGRET_E_ARGUMENT;
  const auto placement = pool->state->placement.load();
  if (placement == nullptr || placement->size() == 0) return EGRET_E_UNAVAILABLE;
  return static_cast<int>(placement->member_of({key, key_length}));
}

int egret_client_new(egret_pool* pool, egret_client** client) {
  if (pool == nullptr || client == nullptr) return EGRET_E_ARGUMENT;
  *client = nullptr;
  return enter_without_client([&] {
    set_up_process();
    auto made = std::make_unique<egret_client>(pool->state);
    if (!made->engine->status()) return EGRET_E_MEMORY;
    *client = made.release();
    return EGRET_OK;
  });
}

egret_client* egret_client_mine(egret_pool* pool) {
  if (pool == nullptr) return nullptr;
  egret_client* found = nullptr;
  enter_without_client([&] {
    set_up_process();
    found = mine.of(*pool);
    return EGRET_OK;
  });
  return found;
}

int egret_client_adopt(egret_client* client) {
  if (client == nullptr) return EGRET_E_ARGUMENT;
  if (client->generation != ForkGuard::generation()) return EGRET_E_FORKED;
  if (client->is_in_call) return EGRET_E_THREAD;
  client->owner.store(this_thread(), std::memory_order_relaxed);
  client->buffers->set_owner(this_thread());
  client->engine->router().for_each_session([](auto& session) { release_owner(session); });
  return EGRET_OK;
}

// What a parent or a failure left behind is not touched: it may be in any state.
void egret_client_free(egret_client* client) {
  if (client == nullptr) return;
  const int refused = refusal(client);
  if (refused == EGRET_E_THREAD) return;
  if (refused != EGRET_OK) {
    [[maybe_unused]] const Engine* const engine = client->engine.release();
    [[maybe_unused]] const Queue* const queue = client->queue.release();
    delete client;
    return;
  }
  enter_without_client([&] {
    client->engine.reset();
    client->queue.reset();
    client->buffers->orphan();
    delete client;
    return EGRET_OK;
  });
}

const char* egret_why(const egret_client* client) {
  if (client == nullptr) return "";
  if (const int refused = refusal(client); refused != EGRET_OK && refused != EGRET_E_BROKEN) return egret_text(refused);
  return client->why.c_str();
}

}  // extern "C"
