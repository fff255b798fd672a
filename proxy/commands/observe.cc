#include "proxy/commands/observe.h"

#include <ctime>

#include "memcache/uri.h"
#include "op/stats.h"

namespace egret::proxy {

using memcache::CommandKind;
using op::ResultCode;

namespace {

constexpr int64_t kThirtyDays = 2'592'000;  // seconds; a larger exptime is an absolute time

void append_number(std::string& text, std::string_view name, int64_t value) {
  text.append(name).append(std::to_string(value));
}

std::string keyed(std::string_view type, std::string_view key) {
  std::string text = "type=";
  text.append(type).append(" key=");
  memcache::append_uri_encoded(text, key);
  return text;
}

// --- memcached's names

std::string_view command_of(const Observed& observed) {
  constexpr std::string_view kByMode[op::kSetModes] = {"set", "add", "replace", "append", "prepend"};
  if (observed.kind == CommandKind::kMetaSet) return kByMode[static_cast<size_t>(observed.mode)];
  return memcache::is_storage(observed.kind) ? memcache::to_string(observed.kind) : "null";
}

std::string_view status_of(ResultCode code) {
  switch (code) {
    case ResultCode::kStored:
    case ResultCode::kNumber:
      return "stored";
    case ResultCode::kExists:
      return "exists";
    case ResultCode::kMiss:
      return "not_found";
    case ResultCode::kTooLarge:
      return "too_large";
    case ResultCode::kOutOfMemory:
      return "no_memory";
    default:
      return "not_stored";
  }
}

// As memcached prints it: as an unsigned number.
uint32_t ttl_of(int64_t exptime) {
  if (exptime <= kThirtyDays) return static_cast<uint32_t>(exptime);
  return static_cast<uint32_t>(exptime - ::time(nullptr));
}

// --- Lines

// Whether there was an item when the command came.
bool found(const Observed& observed, const op::Result& result) {
  switch (result.code) {
    case ResultCode::kMiss:
      return false;
    case ResultCode::kStored:
      return (result.marks & op::kCreated) == 0;
    case ResultCode::kNotStored:
      return command_of(observed) == "add";
    default:
      return true;
  }
}

// The length of the found item's value. Of a replaced item the new length, since the old one is not known here.
uint64_t length_of(const op::Result& result) {
  switch (result.code) {
    case ResultCode::kNumber:
      return std::to_string(result.number).size();
    case ResultCode::kStored:
    case ResultCode::kDeleted:
      return result.number;
    default:
      return result.total_length;
  }
}

void tell_fetched(AdminState& state, const Observed& observed, const op::Result& result, int descriptor) {
  const bool is_found = found(observed, result);
  const uint64_t length = length_of(result);
  std::string text = keyed("item_get", observed.key);
  text.append(is_found ? " status=found" : " status=not_found");
  append_number(text, " clsid=", is_found ? op::shown_class_of(observed.key.size(), length) : 0);
  append_number(text, " cfd=", descriptor);
  append_number(text, " size=", is_found ? static_cast<int64_t>(length) : 0);
  state.watch.log(memcache::kFetchers, text);
}

void tell_stored(AdminState& state, const Observed& observed, const op::Result& result, int descriptor) {
  std::string text = keyed("item_store", observed.key);
  text.append(" status=").append(status_of(result.code));
  text.append(" cmd=").append(command_of(observed));
  append_number(text, " ttl=", ttl_of(observed.exptime));
  const uint64_t length = result.code == ResultCode::kStored     ? result.number
                          : result.code == ResultCode::kTooLarge ? 0
                                                                 : observed.value_length;
  append_number(text, " clsid=", op::shown_class_of(observed.key.size(), observed.value_length));
  append_number(text, " cfd=", descriptor);
  append_number(text, " size=", static_cast<int64_t>(length));
  state.watch.log(memcache::kMutations, text);
}

void tell_deleted(AdminState& state, const Observed& observed, const op::Result& result) {
  std::string text = keyed("deleted", observed.key);
  text.append(observed.kind == CommandKind::kMetaDelete ? " cmd=md" : " cmd=delete");
  append_number(text, " clsid=", op::shown_class_of(observed.key.size(), result.number));
  append_number(text, " size=", static_cast<int64_t>(result.number));
  state.watch.log(memcache::kDeletions, text);
}

// memcached fetches the item before it changes it, and reports that fetch. Without room for a change it is not known
// whether there was an item.
bool tells_of_fetch(ResultCode code) {
  return code != ResultCode::kTooLarge && code != ResultCode::kOutOfMemory && code != ResultCode::kInvalid;
}

void count(PrefixStats& prefixes, const Observed& observed, const op::Result& result) {
  if (memcache::is_retrieval(observed.kind)) {
    prefixes.count_get(observed.key, result.code == ResultCode::kHit);
  } else if (memcache::is_storage(observed.kind) && observed.kind != CommandKind::kMetaSet) {
    prefixes.count_set(observed.key);
  } else if (observed.kind == CommandKind::kDelete) {
    prefixes.count_delete(observed.key);
  }
}

// "rip=… rport=… transport=…".
void append_peer(std::string& text, std::string_view peer) {
  const size_t scheme = peer.find(':');
  const std::string_view address = peer.substr(scheme == peer.npos ? peer.size() : scheme + 1);
  if (peer.starts_with("unix")) {
    text.append(" rip=unix rport=0 transport=local");
    return;
  }
  const size_t colon = address.rfind(':');
  std::string_view host = address.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  text.append(" rip=").append(host).append(" rport=").append(address.substr(colon + 1)).append(" transport=tcp");
}

}  // namespace

std::unique_ptr<Observed> note(const memcache::Command& command) {
  return std::make_unique<Observed>(
      Observed{std::string(command.key), command.kind, command.mode, command.exptime, command.value_length,
               command.kind == CommandKind::kMetaDelete && (command.options & op::kInvalidate) != 0});
}

void tell(AdminState& state, const Observed& observed, const op::Result& result, int descriptor) {
  if (result.code >= ResultCode::kSessionLost) return;  // the outcome is unknown
  if (state.prefixes.is_on()) count(state.prefixes, observed, result);
  const uint32_t wanted = state.watch.wanted();
  if ((wanted & memcache::kFetchers) != 0 && tells_of_fetch(result.code))
    tell_fetched(state, observed, result, descriptor);
  if ((wanted & memcache::kMutations) != 0 && memcache::is_storage(observed.kind))
    tell_stored(state, observed, result, descriptor);
  if ((wanted & memcache::kDeletions) != 0 && result.code == ResultCode::kDeleted && !observed.marks_stale)
    tell_deleted(state, observed, result);
}

void tell_connected(AdminState& state, const ConnectionRecord& client) {
  if ((state.watch.wanted() & memcache::kConnectionEvents) == 0) return;
  std::string text = "type=conn_new";
  append_peer(text, peer_text(client));
  append_number(text, " cfd=", client.fd);
  state.watch.log(memcache::kConnectionEvents, text);
}

void tell_gone(AdminState& state, const ConnectionRecord& client, GoneBecause why) {
  if ((state.watch.wanted() & memcache::kConnectionEvents) == 0) return;
  constexpr std::string_view kReasons[] = {"error", "normal", "idle_timeout", "shutdown"};
  std::string text = "type=conn_close";
  append_peer(text, peer_text(client));
  text.append(" reason=").append(kReasons[static_cast<size_t>(why)]);
  append_number(text, " cfd=", client.fd);
  state.watch.log(memcache::kConnectionEvents, text);
}

}  // namespace egret::proxy
