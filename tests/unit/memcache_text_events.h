// A stand-in for the proxy's connection: feeds a parser through a buffer of the size it asks for, and writes down its
// events as text, one each, so that a test can say what it expects in one line.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memcache/binary/binary.h"
#include "memcache/parser.h"
#include "memcache/text/text_parser.h"

namespace egret::memcache {

template <DialectParser Parser>
class BasicEventLog {
 public:
  explicit BasicEventLog(Limits limits = {}, bool swallow_values = false)
      : parser_(limits), capacity_(Parser::min_buffer(limits)), swallow_values_(swallow_values) {}

  // The bytes arrive in one piece, as far as there is room for them.
  BasicEventLog& feed(std::string_view bytes) {
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

  BasicEventLog& feed_by(size_t piece, std::string_view bytes) {
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
      // The end of a binary value has no bytes of its own.
      const bool may_stand =
          step.event == Event::kNeedMore || step.event == Event::kClose || step.event == Event::kValueEnd;
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
      const bool is_own = view.data() >= command.own && view.data() + view.size() <= command.own + Command::kOwnBytes;
      return view.data() == nullptr || is_own ||
             (view.data() >= input.data() && view.data() + view.size() <= input.data() + step.consumed);
    };
    const bool has_echo = command.dialect == Dialect::kMeta && is_keyed(command.kind);
    return inside(command.key) && inside(command.value) && (!has_echo || inside(command.echo)) &&
           std::all_of(std::begin(command.arguments), std::end(command.arguments), inside);
  }

  void record(Event event, const Command& c) {
    switch (event) {
      case Event::kNeedMore:
        return;
      case Event::kKey:
        if (c.dialect != Dialect::kClassic) return add(describe(c));
        return add(kind(c) + " " + std::string(c.key) + exptime_of_gat(c));
      case Event::kEndOfKeys:
        return add("end " + kind(c));
      case Event::kCommand:
        return add(describe(c) + (has_value(c.kind) ? " = " + std::string(c.value) : ""));
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

  static bool is_keyed(CommandKind kind) { return kind < CommandKind::kFlushAll; }
  static bool has_value(CommandKind kind) {
    return is_storage(kind) || kind == CommandKind::kSaslStart || kind == CommandKind::kSaslStep ||
           kind == CommandKind::kAuthenticate;
  }

  // What a meta or binary command says beyond its kind and key: everything that is not as in a plain one.
  static std::string spelled_out(const Command& c) {
    static constexpr std::pair<uint16_t, const char*> kNames[] = {{op::kCompareCas, "cas="},
                                                                  {op::kTouch, "exptime="},
                                                                  {op::kNoValue, "no-value"},
                                                                  {op::kWantCas, "want-cas"},
                                                                  {op::kDecrement, "decrement"},
                                                                  {op::kCreate, "create="},
                                                                  {op::kPin, "pin"},
                                                                  {op::kExplicitCas, "new-cas="},
                                                                  {op::kVivify, "vivify="},
                                                                  {op::kRecache, "recache="},
                                                                  {op::kInvalidate, "invalidate"},
                                                                  {op::kDropValue, "drop-value"},
                                                                  {op::kWantMeta, "want-meta"},
                                                                  {op::kPeek, "peek"},
                                                                  {op::kNewTtl, "new-ttl"},
                                                                  {op::kNoBump, "no-bump"}};
    std::string text;
    for (const auto& [bit, name] : kNames) {
      if ((c.options & bit) == 0) continue;
      text += std::string(" ") + (bit == op::kTouchFirst && c.kind == CommandKind::kMetaGet ? "touch-first" : name);
      if (bit == op::kCompareCas) text += std::to_string(c.cas);
      if (bit == op::kTouch) text += std::to_string(c.exptime);
      if (bit == op::kCreate) text += std::to_string(c.initial) + "@" + std::to_string(c.vivify_exptime);
      if (bit == op::kExplicitCas) text += std::to_string(c.new_cas);
      if (bit == op::kVivify) text += std::to_string(c.vivify_exptime);
      if (bit == op::kRecache) text += std::to_string(c.recache_below);
    }
    if (is_storage(c.kind)) {
      static constexpr const char* kModes[] = {"set", "add", "replace", "append", "prepend"};
      text += std::string(" mode ") + kModes[static_cast<size_t>(c.mode)] + " flags " + std::to_string(c.client_flags) +
              " exptime " + std::to_string(c.exptime) + " length " + std::to_string(c.value_length);
    }
    const bool counts =
        c.kind == CommandKind::kMetaArith || c.kind == CommandKind::kIncr || c.kind == CommandKind::kDecr;
    if (counts) text += " by " + std::to_string(c.delta);
    return text + (c.quiet ? " quiet" : "");
  }

  static std::string describe(const Command& c) {
    if (c.dialect != Dialect::kClassic && is_keyed(c.kind)) {
      return kind(c) + " key " + std::string(c.key) + spelled_out(c);
    }
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
      case CommandKind::kAdmin:
        text += " [" + std::string(c.echo) + "]";
        break;
      default:
        break;
    }
    const bool has_key = is_keyed(c.kind) || c.kind == CommandKind::kAuthenticate ||
                         c.kind == CommandKind::kSaslStart || c.kind == CommandKind::kSaslStep;
    if (has_key) text += " key " + std::string(c.key);
    return text + (c.noreply ? " noreply" : "") + (c.quiet ? " quiet" : "");
  }

  static std::string exptime_of_gat(const Command& c) {
    const bool gat = c.kind == CommandKind::kGat || c.kind == CommandKind::kGats;
    return gat ? " exptime " + std::to_string(c.exptime) : "";
  }
  static std::string kind(const Command& c) { return to_string(c.kind); }
  static std::string line(std::string_view error) {
    if (error[0] == binary::kResponseMagic) {
      return "status " + std::to_string(binary::read_big<uint16_t>(error.data() + 6)) + " to " +
             std::to_string(static_cast<uint8_t>(error[1])) + " opaque " + std::string(error.substr(12, 4)) + ": " +
             std::string(error.substr(binary::kHead));
    }
    return error.substr(error.size() - 2) == "\r\n" ? std::string(error.substr(0, error.size() - 2)) : "no line end!";
  }
  void add(std::string text) { events_.push_back(std::move(text)); }

  Parser parser_;
  const size_t capacity_;
  const bool swallow_values_;
  std::string buffer_;
  std::vector<std::string> events_;
  size_t calls_ = 0;
  bool closed_ = false;
  bool stuck_ = false;
  bool views_in_input_ = true;
};

using EventLog = BasicEventLog<TextParser>;

}  // namespace egret::memcache
