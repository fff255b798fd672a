// What the opaque handles of egret.h are.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "client/api/results.h"
#include "client/config/settings.h"
#include "client/egret.h"
#include "client/engine/engine.h"
#include "pool/placement.h"

namespace egret::client {

// Shared by a pool and its clients, whoever is freed last. Any thread.
struct PoolState {
  Settings settings;
  // Where keys are: of the given backends, or as a client has heard it last from the proxy; null: none has yet.
  mutable std::atomic<std::shared_ptr<const pool::Placement>> placement;
  uint64_t number = 0;  // of this process's pools; never used again
};

}  // namespace egret::client

struct egret_options {
  egret::client::GivenOptions given;
  std::string error;
};

struct egret_pool {
  std::shared_ptr<const egret::client::PoolState> state;
};

struct egret_client {
  explicit egret_client(std::shared_ptr<const egret::client::PoolState> of);

  const std::shared_ptr<const egret::client::PoolState> pool;
  const egret::base::SystemClock clock{};
  std::atomic<uintptr_t> owner;  // process/thread.h
  uint64_t generation;           // process/fork.h
  bool is_in_call = false;
  bool is_broken = false;
  egret::client::Buffers* const buffers;  // deletes itself
  std::unique_ptr<egret::client::Queue> queue;
  std::unique_ptr<egret::client::Engine> engine;  // uses queue
  void (*on_result)(void* user, egret_result* result) = nullptr;
  void* on_result_user = nullptr;
  std::string why;
};
