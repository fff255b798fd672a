// memcached's protocol in a program's own process: the bytes that it sends become ops, their results the bytes that it receives.
//
//   put(bytes) ─ ClientParser ─ Command ─┬─ an op ─▶ Engine ─ slots ─ result ─┐
//                                        ├─ answered here (mn, noop, errors) ──┴─ in the order of the commands ─▶ output()
//                                        └─ slots do not know it ─▶ aside() ─▶ the owner's connection to the proxy
//
// A command that slots do not know (stats, flush_all, SASL, …) is set *aside*, and nothing behind it is parsed. When all before it
// are answered, the owner sends its bytes over the connection. When its answer has ended, the owner calls resume(); if it never ends
// (AsideEnd::kNever), the owner calls leave(), and all further bytes go over the connection.
//
// Owned by a socket (served_socket.h), over the engine of the thread that opened it. Thread: one at a time, in the engine's section.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "client/engine/engine.h"
#include "memcache/answer.h"
#include "memcache/client_parser.h"

namespace egret::preload {

// How the answer to a command that goes aside ends.
enum class AsideEnd : uint8_t {
  kNoAnswer,
  kOneLine,
  kReport,   // lines until END, RESET, OK or an error
  kPacket,   // binary: one
  kPackets,  // binary: until one without key and value
  kNever,    // the connection serves from here on
};

class BytesEngine final : private client::AnswerSink {
 public:
  explicit BytesEngine(client::Engine& engine) : engine_(engine) {}
  // Answers that come later are nobody's.
  ~BytesEngine() { engine_.forget(*this, kTag); }
  BytesEngine(const BytesEngine&) = delete;
  BytesEngine& operator=(const BytesEngine&) = delete;

  // Takes all of it. Where lanes have no credit it waits for a moment: then it holds what is left, and goes on when it is called again.
  void put(std::string_view bytes);
  bool is_holding() const { return held_.place != nullptr; }
  // Looks for results; never waits.
  void poll();
  // Takes those that have come to the engine by somebody else's poll, and goes on with what it holds.
  void collect();
  // What the program may receive next; take() drops it.
  std::string_view output() const { return std::string_view(output_).substr(taken_); }
  void take(size_t bytes);
  // Answers are yet to come.
  bool is_awaited() const { return !places_.empty(); }
  // What it holds, in bytes.
  size_t held() const { return input_.size() + output_.size() - taken_; }
  // The program has said what ends a connection: it receives output(), and then its end.
  bool is_over() const { return is_over_ && places_.empty(); }
  // An op was not answered, or not sent: whoever listens behind may be gone.
  bool has_failed() const { return has_failed_; }
  void clear_failure() { has_failed_ = false; }

  bool is_binary() const { return parser_.is_binary(); }

  // --- commands that go aside: all before are answered, and output() has been told
  bool has_aside() const { return !aside_.empty() && places_.empty(); }
  const std::string& aside() const { return aside_; }
  AsideEnd aside_end() const { return aside_end_; }
  void resume();
  // All that was put and is not answered: the connection serves from here on, and gets it. Without a command aside, if
  // can_leave(): else answers are yet to come, or half a long value is here.
  std::string leave();
  bool can_leave() const { return places_.empty() && !is_over_ && parser_.is_between_commands(); }

  uint64_t ops() const { return ops_; }

 private:
  // Of an answer among the others. Stays where it is until it is the first, and done.
  struct Place {
    std::string bytes;  // the answer; of a request that is answered when it is the first one, nothing
    bool is_done = true;
    bool ends_retrieval = false;
    bool voids_retrieval = false;   // an error, which is all of its line's answer, asked-for keys or not
    bool is_retrieval = false;      // a request for one of its keys
    bool failed_retrieval = false;  // `bytes` are the line for all of it
    // Of requests.
    bool is_read = false;
    std::string key{};
    memcache::Question question{};
  };

  // A request for which there was no credit yet. Its place is the last one, and what follows it is not parsed.
  struct Held {
    Place* place = nullptr;  // null: there is none
    op::Op op;
    std::string value;
    uint64_t until_ns = 0;
  };

  void feed();
  bool submit_held();
  void on_taken(Place& place, client::Taken taken);
  void act(memcache::Event event);
  void on_command();
  void on_value_end();
  void set_aside(AsideEnd end);
  void add_request(std::string_view value);
  void answer_now(std::string_view line) { places_.push_back({.bytes = std::string(line)}); }
  void answer_ok();
  void on_answer(const client::Call& call, const op::Result& result) override;
  void write(Place& place, const op::Result& result);
  void write(std::string& bytes, const Place& place, const op::Result& result) const;
  void settle();

  static constexpr uint64_t kTag = 0;

  client::Engine& engine_;
  memcache::ClientParser parser_{memcache::Limits{}};
  memcache::Command command_;
  std::string input_, collected_, key_, echo_;
  size_t used_ = 0;           // of input_
  size_t begin_ = 0;          // in input_: of the command that was parsed last
  std::deque<Place> places_;  // answers, in their order
  std::string retrieval_;     // of a classic one, until its end
  bool retrieval_failed_ = false;
  std::string output_;
  size_t taken_ = 0;
  Held held_;
  uint64_t patience_ns_ = 0;  // how long it may still wait for credit
  std::string aside_;
  AsideEnd aside_end_ = AsideEnd::kNever;
  bool is_over_ = false;
  bool has_failed_ = false;
  uint64_t ops_ = 0;
};

}  // namespace egret::preload
