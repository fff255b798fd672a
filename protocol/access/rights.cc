#include "access/rights.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace egret::access {

namespace {
bool parse_id(std::string_view text, uint32_t& id) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  return error == std::errc{} && end == text.data() + text.size();
}
}  // namespace

base::Expected<RightsTable> RightsTable::parse(const std::vector<std::string>& entries) {
  RightsTable table;
  for (const std::string& text : entries) {
    Entry entry;
    if (!parse_entry(text, entry)) {
      return base::Status::error(
          "expected entries like uid=33:read+write (uid=N, gid=N, secret=NAME or other, then read, write, flush, dump, "
          "limits, all or none), got \"" +
          text + "\"");
    }
    table.entries_.push_back(std::move(entry));
  }
  return table;
}

bool RightsTable::parse_entry(const std::string& text, Entry& entry) {
  const std::string_view whole = text;
  const size_t colon = whole.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view who = whole.substr(0, colon);
  const std::string_view id = who.substr(std::min(who.find('='), who.size()));
  const std::string_view kind = who.substr(0, who.size() - id.size());
  const std::string_view value = id.empty() ? id : id.substr(1);
  size_t rights_at = whole.find_first_not_of(' ', colon + 1);
  if (rights_at == std::string_view::npos) rights_at = whole.size();
  if (!op::parse_rights(whole.substr(rights_at), entry.rights)) return false;
  if (who == "other") {
    entry.who = Who::kOther;
    return true;
  }
  if (kind == "secret") {
    entry.who = Who::kSecret;
    entry.secret = value;
    return !value.empty();
  }
  entry.who = kind == "gid" ? Who::kGid : Who::kUid;
  return (kind == "uid" || kind == "gid") && parse_id(value, entry.id);
}

bool RightsTable::names(const Entry& entry, const Peer& peer) {
  switch (entry.who) {
    case Who::kUid:
      return peer.has_user && peer.uid == entry.id;
    case Who::kGid:
      return peer.has_user && std::ranges::find(peer.gids, entry.id) != peer.gids.end();
    case Who::kSecret:
      return peer.secret == entry.secret;
    case Who::kOther:
      return true;
  }
  return false;
}

op::Rights RightsTable::of(const Peer& peer, uint32_t own_uid) const {
  const auto at = std::ranges::find_if(entries_, [&](const Entry& entry) { return names(entry, peer); });
  if (at != entries_.end()) return at->rights;
  const bool is_trusted = !peer.secret.empty() || !peer.has_user || peer.uid == 0 || peer.uid == own_uid;
  return is_trusted ? op::kAllRights : op::kMayRead | op::kMayWrite;
}

std::vector<std::string> RightsTable::secrets() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) {
    if (entry.who == Who::kSecret) names.push_back(entry.secret);
  }
  return names;
}

}  // namespace egret::access
