#include "memcache/command.h"

#include "memcache/parser.h"

namespace egret::memcache {

const char* to_string(CommandKind kind) {
  switch (kind) {
    case CommandKind::kGet:
      return "get";
    case CommandKind::kGets:
      return "gets";
    case CommandKind::kGat:
      return "gat";
    case CommandKind::kGats:
      return "gats";
    case CommandKind::kSet:
      return "set";
    case CommandKind::kAdd:
      return "add";
    case CommandKind::kReplace:
      return "replace";
    case CommandKind::kAppend:
      return "append";
    case CommandKind::kPrepend:
      return "prepend";
    case CommandKind::kCas:
      return "cas";
    case CommandKind::kIncr:
      return "incr";
    case CommandKind::kDecr:
      return "decr";
    case CommandKind::kDelete:
      return "delete";
    case CommandKind::kTouch:
      return "touch";
    case CommandKind::kFlushAll:
      return "flush_all";
    case CommandKind::kVersion:
      return "version";
    case CommandKind::kVerbosity:
      return "verbosity";
    case CommandKind::kStats:
      return "stats";
    case CommandKind::kAdmin:
      return "admin";
    case CommandKind::kMetaGet:
      return "mg";
    case CommandKind::kMetaSet:
      return "ms";
    case CommandKind::kMetaDelete:
      return "md";
    case CommandKind::kMetaArith:
      return "ma";
    case CommandKind::kMetaDebug:
      return "me";
    case CommandKind::kNoop:
      return "noop";
    case CommandKind::kSaslMechanisms:
      return "sasl mechanisms";
    case CommandKind::kSaslStart:
      return "sasl start";
    case CommandKind::kSaslStep:
      return "sasl step";
    case CommandKind::kAuthenticate:
      return "authenticate";
    case CommandKind::kQuit:
      return "quit";
  }
  return "?";
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
