// Many under way, and event loops.
#include <algorithm>

#include "client/api/boundary.h"
#include "client/api/calls.h"
#include "client/egret.h"

using namespace egret::client;

namespace {

constexpr uint64_t kBetweenLooksNs = 5'000'000;  // whether a session that was refused may be tried again

// Outside of a call: user functions may call us.
void call_back(egret_client* client) {
  while (client->on_result != nullptr && !client->is_broken && client->queue->size() > 0) {
    egret_result result = client->queue->take();
    client->on_result(client->on_result_user, &result);
    egret_release(&result);
    if (refusal(client) != EGRET_OK) return;  // it has forked
  }
}

bool is_room(const egret_result* results, size_t room) {
  return room == 0 || (results != nullptr && ResultArray::is_valid(results));
}

// By when an egret_wait() ends.
uint64_t deadline_of(const Engine& engine, int64_t timeout_ns) {
  return timeout_ns < 0 ? UINT64_MAX : engine.clock().now_ns() + static_cast<uint64_t>(timeout_ns);
}

}  // namespace

extern "C" {

int egret_submit(egret_client* client, const egret_op* ops, size_t count) {
  return enter(client, [&](egret_client& c) {
    if (count == 0) return 0;
    if (!OpArray::is_valid(ops) || count > INT32_MAX) {
      return because(c, EGRET_E_ARGUMENT, "an array that is missing, or an op without its size");
    }
    const OpArray array(ops);
    // The backend begins with the first ops while the rest is encoded. Not if others are under way: then it has work already,
    // and a message that is sent early could take the lane's last slot.
    const bool is_first = c.queue->under_way() == 0;
    for (size_t i = 0; i < count; ++i) {
      const int before = static_cast<int>(i);
      const egret_op& given = array[i];
      egret::op::Op op;
      const char* why = nullptr;
      if (const int wrong = to_op(given, op, why); wrong != EGRET_OK)
        return before > 0 ? before : because(c, wrong, why);
      c.queue->submitted();
      const Taken taken = c.engine->submit(op, *c.queue, nullptr, given.tag, (given.flags & EGRET_F_STAYS) != 0);
      if (taken == Taken::kYes) {
        if (is_first && begins_early(i + 1, count)) c.engine->begin_on_host();
        continue;
      }
      c.queue->forgotten(1);
      if (is_for_later(taken)) return before > 0 ? before : int{EGRET_E_AGAIN};
      c.queue->add_failed(taken == Taken::kTooLarge ? EGRET_E_MEMORY : EGRET_E_UNAVAILABLE, given.tag);
    }
    return static_cast<int>(count);
  });
}

int egret_flush(egret_client* client) {
  return enter(client, [&](egret_client& c) {
    c.engine->poll();  // not only a flush: that would not wake a lane that sleeps
    return int{EGRET_OK};
  });
}

int egret_reap(egret_client* client, egret_result* results, size_t room) {
  return enter(client, [&](egret_client& c) {
    if (!is_room(results, room)) return because(c, EGRET_E_ARGUMENT, "a result without its size");
    Queue::HandOut hand_out(*c.queue, results, std::min<size_t>(room, INT32_MAX));
    if (hand_out.count() < room) c.engine->poll(Engine::Look::kDescriptors);
    return hand_out.accept();
  });
}

int egret_wait(egret_client* client, egret_result* results, size_t room, size_t at_least, int64_t timeout_ns) {
  const int count = enter(client, [&](egret_client& c) {
    if (!is_room(results, room)) return because(c, EGRET_E_ARGUMENT, "a result without its size");
    Engine& engine = *c.engine;
    const uint64_t deadline_ns = deadline_of(engine, timeout_ns);
    if (c.queue->pending() == 0) {
      engine.wait([&] { return !engine.is_connecting(); }, deadline_ns);
      return 0;
    }
    const size_t wanted = std::min(at_least, c.queue->pending());
    Queue::HandOut hand_out(*c.queue, results, c.on_result != nullptr ? 0 : std::min<size_t>(room, INT32_MAX));
    engine.poll(wanted > 0 ? Engine::Look::kMemory : Engine::Look::kDescriptors);
    // Fewer may be under way than were: a forgotten one.
    engine.wait([&] { return hand_out.count() + c.queue->size() >= wanted || c.queue->under_way() == 0; }, deadline_ns);
    return hand_out.accept();
  });
  if (count == 0 && client != nullptr && client->on_result != nullptr) call_back(client);
  return count;
}

int egret_forget(egret_client* client, uint64_t tag) {
  return enter(client, [&](egret_client& c) {
    const uint32_t under_way = c.engine->forget(*c.queue, tag);
    c.queue->forgotten(under_way);
    return static_cast<int>(under_way + c.queue->forget(tag));
  });
}

size_t egret_pending(const egret_client* client) {
  return refusal(client) == EGRET_OK ? client->queue->pending() : 0;
}

int egret_release(egret_result* result) {
  if (result == nullptr) return EGRET_E_ARGUMENT;
  if (result->view == nullptr) return EGRET_OK;
  View* const view = static_cast<View*>(result->view);
  if (!view->home->is_callers()) return EGRET_E_THREAD;
  view->home->give(view);
  result->view = nullptr;
  result->value = nullptr;
  return EGRET_OK;
}

int egret_client_connect(egret_client* client, int64_t timeout_ns) {
  return enter(client, [&](egret_client& c) {
    Engine& engine = *c.engine;
    const uint64_t deadline_ns = deadline_of(engine, timeout_ns);
    while (!engine.connect()) {
      const uint64_t now_ns = engine.clock().now_ns();
      if (now_ns >= deadline_ns) return because_of_trouble(c, EGRET_E_UNAVAILABLE);
      engine.wait_for_room(std::min(deadline_ns, now_ns + kBetweenLooksNs));
    }
    return int{EGRET_OK};
  });
}

int egret_fd(egret_client* client) {
  return enter(client, [](egret_client& c) { return c.engine->fd(); });
}

int egret_arm(egret_client* client) {
  return enter(client, [](egret_client& c) {
    // Not armed: something has moved, and may move more.
    while (c.queue->size() == 0 && !c.engine->arm()) {
    }
    return static_cast<int>(std::min<size_t>(c.queue->size(), INT32_MAX));
  });
}

int egret_progress(egret_client* client) {
  const int refused = enter(client, [](egret_client& c) {
    c.engine->on_ready();
    while (c.engine->poll()) {
    }
    return int{EGRET_OK};
  });
  if (refused != EGRET_OK) return refused;
  call_back(client);
  if (const int now = refusal(client); now != EGRET_OK) return now;
  return static_cast<int>(std::min<size_t>(client->queue->size(), INT32_MAX));
}

int egret_on_result(egret_client* client, void (*call)(void* user, egret_result* result), void* user) {
  return enter(client, [&](egret_client& c) {
    c.on_result = call;
    c.on_result_user = user;
    return int{EGRET_OK};
  });
}

}  // extern "C"
