#include "memcache/command.h"

#include <algorithm>
#include <iterator>

#include "memcache/parser.h"

namespace egret::memcache {

namespace {
struct Name {
  CommandKind kind;
  const char* text;
};
constexpr Name kNames[] = {
    {CommandKind::kGet, "get"},
    {CommandKind::kGets, "gets"},
    {CommandKind::kGat, "gat"},
    {CommandKind::kGats, "gats"},
    {CommandKind::kSet, "set"},
    {CommandKind::kAdd, "add"},
    {CommandKind::kReplace, "replace"},
    {CommandKind::kAppend, "append"},
    {CommandKind::kPrepend, "prepend"},
    {CommandKind::kCas, "cas"},
    {CommandKind::kIncr, "incr"},
    {CommandKind::kDecr, "decr"},
    {CommandKind::kDelete, "delete"},
    {CommandKind::kTouch, "touch"},
    {CommandKind::kFlushAll, "flush_all"},
    {CommandKind::kVersion, "version"},
    {CommandKind::kVerbosity, "verbosity"},
    {CommandKind::kStats, "stats"},
    {CommandKind::kAdmin, "admin"},
    {CommandKind::kMetaGet, "mg"},
    {CommandKind::kMetaSet, "ms"},
    {CommandKind::kMetaDelete, "md"},
    {CommandKind::kMetaArith, "ma"},
    {CommandKind::kMetaDebug, "me"},
    {CommandKind::kNoop, "noop"},
    {CommandKind::kSaslMechanisms, "sasl mechanisms"},
    {CommandKind::kSaslStart, "sasl start"},
    {CommandKind::kSaslStep, "sasl step"},
    {CommandKind::kAuthenticate, "authenticate"},
    {CommandKind::kQuit, "quit"},
};
static_assert(std::size(kNames) == static_cast<size_t>(CommandKind::kQuit) + 1);
}  // namespace

const char* to_string(CommandKind kind) {
  const auto* const found = std::ranges::find(kNames, kind, &Name::kind);
  return found != std::end(kNames) ? found->text : "?";
}

const char* to_string(Event event) {
  switch (event) {
    case Event::kNeedMore:
      return "need-more";
    case Event::kCommand:
      return "command";
    case Event::kKey:
      return "key";
    case Event::kEndOfKeys:
      return "end-of-keys";
    case Event::kValueBegin:
      return "value-begin";
    case Event::kValuePart:
      return "value-part";
    case Event::kValueEnd:
      return "value-end";
    case Event::kError:
      return "error";
    case Event::kClose:
      return "close";
  }
  return "?";
}

}  // namespace egret::memcache
