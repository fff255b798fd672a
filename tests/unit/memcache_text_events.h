// A stand-in for the proxy's connection: feeds a parser through a buffer of the size it asks for, and writes down its
// events as text, one each, so that a test can say what it expects in one line.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "memcache/parser.h"
#include "memcache/text_parser.h"

namespace egret::memcache {

class EventLog {
 public:
  explicit EventLog(Limits limits = {}, bool swallow_values = false)
      : parser_(limits), capacity_(TextParser::min_buffer(limits)), swallow_values_(swallow_values) {}

  // The bytes arrive in one piece, as far as there is room for them.
  EventLog& feed(std::string_view bytes) {
    while (!bytes.empty() && !closed_ && !stuck_) {
      const size_t room = capacity_ - buffer_.size();
      const size_t taken = std::min(room, bytes.size());
      buffer_.append(bytes.substr(0, taken));
      bytes.remove_prefix(taken);
      drain();
      stuck_ = stuck_ || buffer_.size() == capacity_;
    }
    return *this;
  }

  EventLog& feed_by(size_t piece, std::string_view bytes) {
    for (size_t i = 0; i < bytes.size(); i += piece) feed(bytes.substr(i, piece));
    return *this;
  }

  const std::vector<std::string>& events() const { return events_; }
  size_t unread() const { return buffer_.size(); }
  size_t calls() const { return calls_; }
  bool closed() const { return closed_; }
  bool stuck() const { return stuck_; }  // no progress, or the buffer is full and more is wanted: a bug
  bool views_in_input() const { return views_in_input_; }  // no view ever left the bytes it was made from

 private:
  void drain() {
    for (;;) {
      Command command;
      const std::string_view input = buffer_;
      const Step step = parser_.next(input, command);
      ++calls_;
      views_in_input_ = views_in_input_ && step.consumed <= input.size() && views_lie_in(input, step, command);
      record(step.event, command);
      const bool may_stand = step.event == Event::kNeedMore || step.event == Event::kClose;
      if (step.consumed == 0 && !may_stand) stuck_ = true;
      buffer_.erase(0, step.consumed);
      if (step.event == Event::kValueBegin && swallow_values_) parser_.swallow_value();
      if (step.event == Event::kClose) closed_ = true;
      if (step.event == Event::kNeedMore || closed_ || stuck_) return;
    }
  }

  static bool views_lie_in(std::string_view input, const Step& step, const Command& command) {
    if (step.event == Event::kNeedMore) return true;  // names no field
    const auto inside = [&](std::string_view view) {
      return view.data() == nullptr ||
             (view.data() >= input.data() && view.data() + view.size() <= input.data() + step.consumed);
    };
    return inside(command.key) && inside(command.value) &&
           std::all_of(std::begin(command.arguments), std::end(command.arguments), inside);
  }

  void record(Event event, const Command& c) {
    switch (event) {
      case Event::kNeedMore:
        return;
      case Event::kKey:
        return add(kind(c) + " " + std::string(c.key) + exptime_of_gat(c));
      case Event::kEndOfKeys:
        return add("end " + kind(c));
      case Event::kCommand:
        return add(describe(c) + (is_storage(c.kind) ? " = " + std::string(c.value) : ""));
      case Event::kValueBegin:
        return add(describe(c) + " streamed");
      case Event::kValuePart:
        // How a value falls to pieces is the network's affair; only the whole can be expected.
        if (events_.back().rfind("part ", 0) != 0) add("part ");
        events_.back() += c.value;
        return;
      case Event::kValueEnd:
        return add(c.terminator_ok ? "value ok" : "value bad");
      case Event::kError:
        return add(line(c.error));
      case Event::kClose:
        return add("close" + (c.error.empty() ? "" : " " + line(c.error)));
    }
  }

  static std::string describe(const Command& c) {
    std::string text = kind(c);
    const auto number = [&](const char* name, auto value) { text += name + std::to_string(value); };
    switch (c.kind) {
      case CommandKind::kCas:
        number(" cas ", c.cas);
        [[fallthrough]];
      case CommandKind::kSet:
      case CommandKind::kAdd:
      case CommandKind::kReplace:
      case CommandKind::kAppend:
      case CommandKind::kPrepend:
        number(" flags ", c.client_flags);
        number(" exptime ", c.exptime);
        number(" length ", c.value_length);
        break;
      case CommandKind::kIncr:
      case CommandKind::kDecr:
        number(" by ", c.delta);
        break;
      case CommandKind::kVerbosity:
        number(" ", c.delta);
        break;
      case CommandKind::kTouch:
      case CommandKind::kFlushAll:
        number(" exptime ", c.exptime);
        break;
      case CommandKind::kStats:
        number(" ", c.argument_count);
        for (const std::string_view argument : c.arguments) text += argument.empty() ? "" : " " + std::string(argument);
        break;
      default:
        break;
    }
    if (c.kind < CommandKind::kFlushAll) text += " key " + std::string(c.key);
    return text + (c.noreply ? " noreply" : "");
  }

  static std::string exptime_of_gat(const Command& c) {
    const bool gat = c.kind == CommandKind::kGat || c.kind == CommandKind::kGats;
    return gat ? " exptime " + std::to_string(c.exptime) : "";
  }
  static std::string kind(const Command& c) { return to_string(c.kind); }
  static std::string line(std::string_view error) {
    return error.substr(error.size() - 2) == "\r\n" ? std::string(error.substr(0, error.size() - 2)) : "no line end!";
  }
  void add(std::string text) { events_.push_back(std::move(text)); }

  TextParser parser_;
  const size_t capacity_;
  const bool swallow_values_;
  std::string buffer_;
  std::vector<std::string> events_;
  size_t calls_ = 0;
  bool closed_ = false;
  bool stuck_ = false;
  bool views_in_input_ = true;
};

}  // namespace egret::memcache
