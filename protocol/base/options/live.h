// A value that is replaced as a whole while other threads read it. A reader keeps the value of the moment when it
// asked. Cold paths only: get() takes a lock and a reference count that threads share. A thread that needs the value
// often keeps its copy, and is told by a message when to get a new one.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace egret::base {

template <typename T>
class Live {
 public:
  Live() : value_(std::make_shared<const T>()) {}
  explicit Live(T value) : value_(std::make_shared<const T>(std::move(value))) {}
  Live(const Live&) = delete;
  Live& operator=(const Live&) = delete;

  // Any thread. Never null.
  std::shared_ptr<const T> get() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }
  void set(T value) {
    auto next = std::make_shared<const T>(std::move(value));
    {
      const std::lock_guard lock(mutex_);
      value_.swap(next);
    }  // the old value is destroyed after the lock is released
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const T> value_;
};

}  // namespace egret::base
