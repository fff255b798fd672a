#include "rpc/active/active_sessions.h"

#include <algorithm>

#include "rpc/client_session.h"
#include "transport/transport.h"

namespace egret::rpc {

void ActiveSessions::forget(const ClientSession* session) {
  std::erase(active_, session);
  std::erase(unarmed_, session);
}

void ActiveSessions::begin_pass() {
  size_t kept = 0;
  for (size_t i = 0; i < active_.size(); ++i) {
    ClientSession& session = *active_[i];
    switch (session.begin_pass()) {
      case ClientSession::Rest::kActive:
        active_[kept++] = &session;
        break;
      case ClientSession::Rest::kUnarmed:
        unarmed_.push_back(&session);
        break;
      case ClientSession::Rest::kAtRest:
        break;
    }
  }
  active_.resize(kept);
}

void ActiveSessions::flush() {
  for (size_t i = 0; i < active_.size(); ++i) active_[i]->flush();
}

bool ActiveSessions::fetch() {
  if (group_ != nullptr) group_->poll();
  bool any = false;
  for (size_t i = 0; i < active_.size(); ++i) any |= active_[i]->fetch();
  return any;
}

bool ActiveSessions::hand_out_credit() {
  bool any = false;
  for (size_t i = 0; i < active_.size(); ++i) any |= active_[i]->credit().hand_out();
  return any;
}

bool ActiveSessions::should_spin() {
  return std::ranges::any_of(active_, [](ClientSession* each) { return each->is_open() && each->should_spin(); });
}

void ActiveSessions::end_spin() {
  for (ClientSession* each : active_) rpc::end_spin(*each);
}

// Whether every further result will wake the worker.
bool ActiveSessions::prepare_sleep() {
  bool is_quiet = true;
  for (size_t i = 0; i < active_.size(); ++i) is_quiet &= active_[i]->prepare_sleep();
  for (size_t i = 0; i < unarmed_.size(); ++i) is_quiet &= unarmed_[i]->arm_at_rest();
  unarmed_.clear();
  if (group_ == nullptr) return is_quiet;
  group_->arm();
  return !group_->poll() && is_quiet;
}

bool ActiveSessions::has_appended() const {
  return std::ranges::any_of(active_, [](ClientSession* each) {
    return each->is_open() && (each->lanes().has_open() || each->credit().is_due());
  });
}

bool ActiveSessions::awaits() const {
  return std::ranges::any_of(active_, [](ClientSession* each) { return each->is_open() && each->lanes().awaits(); });
}

bool ActiveSessions::holds_much() const {
  return std::ranges::any_of(active_,
                             [](ClientSession* each) { return each->is_open() && each->lanes().holds_much(); });
}

bool ActiveSessions::needs_tick() const {
  return std::ranges::any_of(active_, [](const ClientSession* each) { return each->needs_tick(); });
}

}  // namespace egret::rpc
