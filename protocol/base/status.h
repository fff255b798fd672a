// The outcome of a cold-path call: success, or one sentence that says what went wrong. The data path returns enums
// instead, and counts.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace egret::base {

// [[nodiscard]]: an ignored failure is a bug. Cheap when it succeeds (an empty string).
class [[nodiscard]] Status {
 public:
  static Status ok() { return Status(); }
  static Status error(std::string message) { return Status(std::move(message)); }
  // An error that carries errno's text after `what`: "cannot open /x: No such file or directory".
  static Status system_error(const std::string& what, int error_number);

  bool is_ok() const { return message_.empty(); }
  explicit operator bool() const { return is_ok(); }
  const std::string& message() const { return message_; }

 private:
  Status() = default;
  explicit Status(std::string message) : message_(message.empty() ? "unknown error" : std::move(message)) {}
  std::string message_;
};

// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : state_(std::move(value)) {}           // NOLINT(google-explicit-constructor)
  Expected(Status failure) : state_(std::move(failure)) {}  // NOLINT(google-explicit-constructor)

  bool is_ok() const { return state_.index() == 0; }
  explicit operator bool() const { return is_ok(); }
  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  Status status() const { return is_ok() ? Status::ok() : std::get<1>(state_); }
  const std::string& message() const { return std::get<1>(state_).message(); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace egret::base
