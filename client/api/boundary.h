// Where calls of the program enter the library: who may call, and what happens when the library fails inside.
//
//   call ─▶ another thread's, a parent's, broken: refused ─▶ the work ─ throws (a failed check, no memory): the client is
//           broken, and nothing of it is touched again ─▶ lines for the log go out
//
// Nothing that is thrown leaves the library, and no thread is cancelled within a call: pthread_cancel() takes effect at
// the first cancellation point after it.
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include <pthread.h>

#include "client/api/handles.h"
#include "client/process/fork.h"
#include "client/process/thread.h"

namespace egret::client {

// To be called before anything else of the library: by whatever makes the first handle.
void set_up_process();

// A level of egret_log().
inline constexpr int kErrorLevel = 3;
// One line to egret_log()'s callback.
void write_line(int level, const std::string& line);
// Hands lines of the engine to egret_log()'s callback.
void write_lines(egret_client& client);
// The engine's state is unknown from now on.
int break_client(egret_client& client, const char* what);

// 0, or why a call is refused.
inline int refusal(const egret_client* client) {
  if (client == nullptr) return EGRET_E_ARGUMENT;
  if (client->generation != ForkGuard::generation()) [[unlikely]]
    return EGRET_E_FORKED;
  if (client->owner.load(std::memory_order_relaxed) != this_thread() || client->is_in_call) [[unlikely]]
    return EGRET_E_THREAD;
  return client->is_broken ? EGRET_E_BROKEN : EGRET_OK;
}

// While it lives this thread is not cancelled.
class Uncancelled {
 public:
  Uncancelled() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() { ::pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

template <typename Work>
int enter(egret_client* client, Work work) noexcept {
  if (const int refused = refusal(client); refused != 0) [[unlikely]]
    return refused;
  const Uncancelled section;
  client->is_in_call = true;
  int code = 0;
  try {
    code = work(*client);
  } catch (const std::bad_alloc&) {
    code = break_client(*client, "no memory");
  } catch (const std::exception& problem) {
    code = break_client(*client, problem.what());
  } catch (...) {
    code = break_client(*client, "an unknown failure");
  }
  client->is_in_call = false;
  if (!client->is_broken && client->engine->has_log()) [[unlikely]]
    write_lines(*client);
  return code;
}

// For what has no client.
template <typename Work>
int enter_without_client(Work work) noexcept {
  const Uncancelled section;
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return EGRET_E_MEMORY;
  } catch (...) {
    return EGRET_E_BROKEN;
  }
}

}  // namespace egret::client
