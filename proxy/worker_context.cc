#include "proxy/worker_context.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "proxy/config.h"
#include "transport/address.h"
#include "wire/slot.h"

namespace egret::proxy {

namespace {
constexpr size_t kInputBlock = 64 * 1024;
constexpr uint64_t kHandshakeNs = 10'000'000'000;  // time limit of a TLS handshake
// Bytes of a request slot beside the value: the message's head, the op's, and the longest key.
constexpr size_t kBesideValue = sizeof(wire::RequestHeader) + 32 + 256;
constexpr size_t kDefaultSlot = 16 * 1024;  // bytes: the slot size on one host, assumed until a session is open

std::unique_ptr<transport::PollGroup> make_group() {
  auto made = transport::make_poll_group();
  if (!made) throw std::system_error(errno, std::system_category(), made.message());
  return std::move(made.value());
}
}  // namespace

WorkerContext::WorkerContext(ProxyState& proxy_state, uint32_t number, const base::Clock& proxy_clock,
                             events::EventLoop& loop, pool::Pool::MakeSession make_session)
    : proxy(proxy_state),
      stats(*proxy_state.workers[number]),
      clock(proxy_clock),
      events(loop),
      config(proxy_state.config.get()),
      group(make_group()),
      pool(std::move(make_session)),
      memory(stats.memory),
      input_blocks(kInputBlock),
      scratch(std::make_unique<char[]>(kInputBlock)),
      replies(pass_ns, stats.requests),
      pulls(pool, clock, stats.pulls, pulled_memory, next_upload_id) {
  replies.set_pulls(pulls);
  limits.inline_value = kDefaultSlot - kBesideValue;
  EGRET_CHECK(memcache::ClientParser::min_buffer(limits) <= kInputBlock);
  take_config();
  verified_event =
      events::Event::on_fd<&WorkerContext::on_verified>(loop, verified->fd(), events::kRead | events::kPersist, *this);
  if (!verified_event.add()) throw std::system_error(errno, std::system_category(), "verified passwords");
  group_event =
      events::Event::on_fd<&WorkerContext::on_group_ready>(loop, group->fd(), events::kRead | events::kPersist, *this);
  if (!group_event.add()) throw std::system_error(errno, std::system_category(), "what sessions receive");
}

// The pass that follows polls.
void WorkerContext::on_group_ready() {
  begin_pass();
  group->ready();
}

void WorkerContext::on_verified() {
  begin_pass();
  verified->deliver();
}

void WorkerContext::begin_pass() {
  if (pass_has_begun) return;
  pass_has_begun = true;
  pass_ns = clock.now_ns();
  active.begin_pass();
}

void WorkerContext::take_config() {
  config = proxy.config.get();
  timeouts.idle_ns = config->idle_timeout_ns;
  timeouts.handshake_ns = timeouts.idle_ns == 0 ? kHandshakeNs : std::min(kHandshakeNs, timeouts.idle_ns);
  memory.connection_limit = config->connection_memory;
  memory.limit = config->client_memory / config->workers;
  memory.large.set_limit(config->large_value_memory / config->workers / 2);
  memory.collected.set_limit(config->large_value_memory / config->workers / 2);
  for (const auto& session : pool.sessions()) {
    session->set_options(config->session);
    session->credit().announce();  // uploads that waited for memory to be collected in try again
  }
}

void WorkerContext::fit_inline_values() {
  size_t slot = 0;
  for (const auto& session : pool.sessions()) {
    if (session->is_open()) slot = std::max<size_t>(slot, session->grant().layout.request_slot_size);
  }
  const size_t inline_value = std::max(slot, 2 * kBesideValue) - kBesideValue;
  memcache::Limits fitted = limits;
  fitted.inline_value = inline_value;
  if (memcache::ClientParser::min_buffer(fitted) <= kInputBlock) limits = fitted;
}

}  // namespace egret::proxy
