// What tests of sources share: a loop that runs until something is so, an observer that counts, and members as text.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "discovery/source.h"
#include "events/event.h"
#include "pool/member.h"

namespace egret {

// Lets a test that would wait for ever fail instead. No test measures a time by it.
class Patience {
 public:
  explicit Patience(events::EventLoop& loop)
      : loop_(loop), alarm_(events::Event::timer<&Patience::on_alarm>(loop, *this)) {}

  // Runs the loop until `is_so()`.
  template <class Condition>
  void until(Condition is_so) {
    constexpr std::chrono::seconds kMost{20};
    is_over_ = false;
    alarm_.add(kMost);
    while (!is_over_ && !is_so()) loop_.run_once(true);
    alarm_.del();
    REQUIRE(is_so());
  }

 private:
  void on_alarm() { is_over_ = true; }

  events::EventLoop& loop_;
  bool is_over_ = false;
  events::Event alarm_;
};

struct CountingObserver final : discovery::SourceObserver {
  void on_members(discovery::Source&) override { ++members; }
  void on_problem(discovery::Source&) override { ++problems; }
  int members = 0;
  int problems = 0;
};

// Members as text: "rdma:10.0.0.1:1", "a.pool:1=rdma:10.0.0.1:1", with a weight "rdma:10.0.0.1:1*3".
struct Texts {
  Texts() = default;
  Texts(std::initializer_list<std::string> texts) : all(texts) {}
  bool operator==(const Texts&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Texts& texts) {
    for (const std::string& text : texts.all) out << text << ' ';
    return out;
  }
  std::vector<std::string> all;
};

inline Texts texts(std::span<const pool::Member> members) {
  Texts texts;
  for (const pool::Member& member : members) {
    std::string text = member.to_string() == member.address ? member.address : member.name + "=" + member.address;
    if (member.weight != 1) text += "*" + std::to_string(member.weight);
    texts.all.push_back(text);
  }
  return texts;
}

}  // namespace egret
