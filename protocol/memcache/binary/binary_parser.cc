// next() -> step(), by state -> packet(): the head, checked against the opcode's row in kShapes -> keyed(): extras, key
// and (a short) value are there, and become fields of the Command. Values above Limits::inline_value go on in value().
#include "memcache/binary/binary_parser.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace egret::memcache {

using binary::Opcode;
using binary::Status;

namespace {

enum class Key : uint8_t { kNone, kOptional, kRequired };

// The form of an opcode's packets, and their meaning.
struct Shape {
  bool known = false;
  CommandKind kind = CommandKind::kQuit;
  Key key = Key::kNone;
  uint8_t extras = 0;
  bool extras_optional = false;
  bool has_value = false;
  bool quiet = false;
  op::SetMode mode = op::SetMode::kSet;
  uint16_t options = 0;
};

constexpr Shape storing(CommandKind kind, op::SetMode mode, uint8_t extras, bool quiet) {
  return {.known = true,
          .kind = kind,
          .key = Key::kRequired,
          .extras = extras,
          .has_value = true,
          .quiet = quiet,
          .mode = mode,
          .options = op::kWantCas};
}
constexpr Shape reading(uint8_t extras, uint16_t options, bool quiet) {
  return {.known = true,
          .kind = (options & op::kNoValue) != 0 ? CommandKind::kTouch : CommandKind::kGet,
          .key = Key::kRequired,
          .extras = extras,
          .quiet = quiet,
          .options = static_cast<uint16_t>(options | op::kWantCas)};
}
constexpr Shape changing(CommandKind kind, uint8_t extras, uint16_t options, bool quiet) {
  return {.known = true, .kind = kind, .key = Key::kRequired, .extras = extras, .quiet = quiet, .options = options};
}
constexpr Shape plain(CommandKind kind, bool quiet = false) {
  return {.known = true, .kind = kind, .quiet = quiet};
}
constexpr Shape flushing(bool quiet) {
  return {.known = true, .kind = CommandKind::kFlushAll, .extras = 4, .extras_optional = true, .quiet = quiet};
}
constexpr Shape sasl(CommandKind kind) {
  return {.known = true, .kind = kind, .key = Key::kRequired, .has_value = true};
}

constexpr std::array<Shape, 0x25> kShapes = [] {
  std::array<Shape, 0x25> shapes{};
  const auto set = [&](Opcode opcode, const Shape& shape) { shapes[static_cast<size_t>(opcode)] = shape; };
  const auto both = [&](Opcode loud, Opcode quiet, Shape shape) {
    set(loud, shape);
    shape.quiet = true;
    set(quiet, shape);
  };
  constexpr uint16_t kNumber = op::kWantCas;
  both(Opcode::kGet, Opcode::kGetQ, reading(0, 0, false));
  both(Opcode::kGetK, Opcode::kGetKQ, reading(0, 0, false));
  both(Opcode::kGat, Opcode::kGatQ, reading(4, op::kTouch, false));
  both(Opcode::kGatK, Opcode::kGatKQ, reading(4, op::kTouch, false));
  set(Opcode::kTouch, reading(4, op::kTouch | op::kNoValue, false));
  both(Opcode::kSet, Opcode::kSetQ, storing(CommandKind::kSet, op::SetMode::kSet, 8, false));
  both(Opcode::kAdd, Opcode::kAddQ, storing(CommandKind::kAdd, op::SetMode::kAdd, 8, false));
  both(Opcode::kReplace, Opcode::kReplaceQ, storing(CommandKind::kReplace, op::SetMode::kReplace, 8, false));
  both(Opcode::kAppend, Opcode::kAppendQ, storing(CommandKind::kAppend, op::SetMode::kAppend, 0, false));
  both(Opcode::kPrepend, Opcode::kPrependQ, storing(CommandKind::kPrepend, op::SetMode::kPrepend, 0, false));
  both(Opcode::kDelete, Opcode::kDeleteQ, changing(CommandKind::kDelete, 0, 0, false));
  both(Opcode::kIncrement, Opcode::kIncrementQ, changing(CommandKind::kIncr, 20, kNumber, false));
  both(Opcode::kDecrement, Opcode::kDecrementQ, changing(CommandKind::kDecr, 20, kNumber | op::kDecrement, false));
  both(Opcode::kFlush, Opcode::kFlushQ, flushing(false));
  both(Opcode::kQuit, Opcode::kQuitQ, plain(CommandKind::kQuit));
  set(Opcode::kNoop, plain(CommandKind::kNoop));
  set(Opcode::kVersion, plain(CommandKind::kVersion));
  set(Opcode::kVerbosity, {.known = true, .kind = CommandKind::kVerbosity, .extras = 4});
  set(Opcode::kStat, {.known = true, .kind = CommandKind::kStats, .key = Key::kOptional});
  set(Opcode::kSaslMechanisms, plain(CommandKind::kSaslMechanisms));
  set(Opcode::kSaslAuth, sasl(CommandKind::kSaslStart));
  set(Opcode::kSaslStep, sasl(CommandKind::kSaslStep));
  return shapes;
}();
constexpr Shape kUnknown{};

bool is_open_to_all(uint8_t opcode) {
  switch (static_cast<Opcode>(opcode)) {
    case Opcode::kSaslMechanisms:
    case Opcode::kSaslAuth:
    case Opcode::kSaslStep:
    case Opcode::kVersion:
      return true;
    default:
      return false;
  }
}

constexpr size_t kMaxExtras = 20;

}  // namespace

// The head of a request, and its opcode's row.
struct BinaryParser::Packet {
  explicit Packet(const char* head)
      : opcode(static_cast<uint8_t>(head[1])),
        key_length(binary::read_big<uint16_t>(head + 2)),
        extras_length(static_cast<uint8_t>(head[4])),
        body_length(binary::read_big<uint32_t>(head + 8)),
        cas(binary::read_big<uint64_t>(head + 16)),
        shape(opcode < kShapes.size() ? kShapes[opcode] : kUnknown) {
    std::memcpy(&opaque, head + 12, sizeof opaque);
  }

  uint64_t before_value() const { return uint64_t{key_length} + extras_length; }
  uint32_t value_length() const { return body_length - static_cast<uint32_t>(before_value()); }

  // Whether the lengths are those of the opcode.
  bool fits() const {
    const bool extras_fit = extras_length == shape.extras || (shape.extras_optional && extras_length == 0);
    const bool key_fits = shape.key == Key::kOptional || (shape.key == Key::kRequired) == (key_length > 0);
    return extras_fit && key_fits && (shape.has_value || value_length() == 0);
  }

  uint8_t opcode;
  uint16_t key_length;
  uint8_t extras_length;
  uint32_t body_length;
  uint32_t opaque = 0;
  uint64_t cas;
  const Shape& shape;
};

namespace {

void read_extras(const char* extras, uint8_t length, Command& out) {
  using binary::read_big;
  switch (out.kind) {
    case CommandKind::kIncr:
    case CommandKind::kDecr: {
      out.delta = read_big<uint64_t>(extras);
      out.initial = read_big<uint64_t>(extras + 8);
      const auto exptime = read_big<uint32_t>(extras + 16);
      out.vivify_exptime = exptime;
      if (exptime != binary::kDoNotCreate) out.options |= op::kCreate;
      break;
    }
    case CommandKind::kSet:
    case CommandKind::kAdd:
    case CommandKind::kReplace:
      out.client_flags = read_big<uint32_t>(extras);
      out.exptime = read_big<uint32_t>(extras + 4);
      break;
    case CommandKind::kVerbosity:
      out.delta = read_big<uint32_t>(extras);
      break;
    default:
      out.exptime = length == 4 ? read_big<uint32_t>(extras) : 0;
  }
}

// The words of a stat's key: "detail dump".
void cut_arguments(std::string_view key, Command& out) {
  out.argument_count = 0;
  for (std::string_view& argument : out.arguments) {
    key.remove_prefix(std::min(key.find_first_not_of(' '), key.size()));
    argument = key.substr(0, key.find(' '));
    if (argument.empty()) continue;
    key.remove_prefix(argument.size());
    ++out.argument_count;
  }
}

void write_error(uint8_t opcode, uint32_t opaque, Status status, Command& out) {
  const char* const end = binary::write_status(out.own, opcode, opaque, status);
  out.error = {out.own, static_cast<size_t>(end - out.own)};
}

}  // namespace

size_t BinaryParser::min_buffer(const Limits& limits) {
  return binary::kHead + kMaxExtras + op::kMaxKeyLength + limits.inline_value;
}

Step BinaryParser::next(std::string_view input, Command& out) noexcept {
  size_t used = 0;
  for (;;) {
    const Step now = step(input.substr(used), out);
    used += now.consumed;
    if (now.event != Event::kNeedMore || now.consumed == 0) return {now.event, used, used - now.consumed};
  }
}

void BinaryParser::swallow_value() {
  if (state_ == State::kValue) state_ = left_ > 0 ? State::kSwallow : State::kPacket;
}

inline Step BinaryParser::step(std::string_view input, Command& out) {
  switch (state_) {
    case State::kPacket:
      return packet(input, out);
    case State::kValue:
      return value(input, out);
    case State::kSwallow: {
      const size_t dropped = std::min(input.size(), left_);
      left_ -= dropped;
      if (left_ == 0) state_ = State::kPacket;
      return {Event::kNeedMore, dropped};
    }
    case State::kRefused:
      return refused(input, out);
    case State::kClosed:
      break;
  }
  out.error = {};
  return {Event::kClose, input.size()};
}

Step BinaryParser::packet(std::string_view input, Command& out) {
  if (!input.empty() && input[0] != binary::kRequestMagic) {
    state_ = State::kClosed;
    out.error = {};
    return {Event::kClose, input.size()};
  }
  if (input.size() < binary::kHead) return {Event::kNeedMore, 0};
  const Packet packet(input.data());
  if (packet.before_value() > packet.body_length) return fail_and_close(packet, Status::kUnknownCommand);
  if (must_authenticate_ && !is_open_to_all(packet.opcode)) return fail_and_close(packet, Status::kAuthError);
  if (packet.key_length > op::kMaxKeyLength) return fail_and_close(packet, Status::kInvalid);
  if (!packet.shape.known) return fail(packet, Status::kUnknownCommand, out);
  if (!packet.fits()) return fail_and_close(packet, Status::kInvalid);
  return keyed(packet, input, out);
}

Step BinaryParser::keyed(const Packet& packet, std::string_view input, Command& out) {
  const uint32_t value_length = packet.value_length();
  const size_t before_value = binary::kHead + packet.before_value();
  const bool whole = value_length <= limits_.inline_value;
  const bool is_sasl = packet.shape.kind == CommandKind::kSaslStart || packet.shape.kind == CommandKind::kSaslStep;
  if (is_sasl && !whole) return fail(packet, Status::kInvalid, out);
  const size_t needed = before_value + (whole ? value_length : 0);
  if (input.size() < needed) return {Event::kNeedMore, 0};

  const Shape& shape = packet.shape;
  out.kind = shape.kind;
  out.dialect = Dialect::kBinary;
  out.noreply = false;
  out.quiet = shape.quiet;
  out.opcode = packet.opcode;
  out.opaque = packet.opaque;
  out.mode = shape.mode;
  out.options = shape.options;
  out.client_flags = 0;
  out.exptime = 0;
  out.cas = packet.cas;
  const bool changes = is_storage(shape.kind) || shape.kind == CommandKind::kDelete ||
                       shape.kind == CommandKind::kIncr || shape.kind == CommandKind::kDecr;
  if (changes && packet.cas != 0) {
    out.options |= op::kCompareCas;
    const bool extends = out.mode == op::SetMode::kAppend || out.mode == op::SetMode::kPrepend;
    if (!extends) out.mode = op::SetMode::kSet;  // with a CAS, add and replace do the same as set
  }
  const char* const extras = input.data() + binary::kHead;
  if (packet.extras_length > 0) read_extras(extras, packet.extras_length, out);
  out.key = {extras + packet.extras_length, packet.key_length};
  out.value_length = value_length;
  out.value = {out.key.data() + packet.key_length, whole ? value_length : 0};
  if (shape.kind == CommandKind::kStats) cut_arguments(out.key, out);
  if (whole) {
    if (shape.kind == CommandKind::kQuit) state_ = State::kClosed;
    return {shape.kind == CommandKind::kGet ? Event::kKey : Event::kCommand, needed};
  }
  left_ = value_length;
  state_ = State::kValue;
  return {Event::kValueBegin, before_value};
}

Step BinaryParser::value(std::string_view input, Command& out) {
  if (left_ == 0) {
    state_ = State::kPacket;
    out.terminator_ok = true;
    return {Event::kValueEnd, 0};
  }
  if (input.empty()) return {Event::kNeedMore, 0};
  out.value = input.substr(0, left_);
  left_ -= out.value.size();
  return {Event::kValuePart, out.value.size()};
}

Step BinaryParser::fail(const Packet& packet, Status status, Command& out) {
  write_error(packet.opcode, packet.opaque, status, out);
  left_ = packet.body_length;
  if (left_ > 0) state_ = State::kSwallow;
  return {Event::kError, binary::kHead};
}

Step BinaryParser::fail_and_close(const Packet& packet, Status status) {
  state_ = State::kRefused;
  refused_opcode_ = packet.opcode;
  refused_opaque_ = packet.opaque;
  refused_status_ = status;
  left_ = packet.before_value();
  return {Event::kNeedMore, binary::kHead};
}

Step BinaryParser::refused(std::string_view input, Command& out) {
  const size_t dropped = std::min(input.size(), left_);
  left_ -= dropped;
  if (left_ > 0) return {Event::kNeedMore, dropped};
  write_error(refused_opcode_, refused_opaque_, refused_status_, out);
  state_ = State::kClosed;
  return {Event::kClose, input.size()};
}

}  // namespace egret::memcache
