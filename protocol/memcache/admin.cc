#include "memcache/admin.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <utility>

#include "memcache/number.h"
#include "memcache/reply.h"
#include "memcache/text/line.h"

namespace egret::memcache {

namespace {

constexpr std::string_view kBadClass = "BADCLASS invalid class id\r\n";
constexpr std::string_view kBadShutdown = "CLIENT_ERROR invalid shutdown mode\r\n";
constexpr std::string_view kBadSleep = "CLIENT_ERROR sleep must be one second or less\r\n";
constexpr std::string_view kIllegalClass = "CLIENT_ERROR Illegal slab id\r\n";
constexpr std::string_view kLimitTooSmall = "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n";
constexpr std::string_view kLimitInBytes = "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n";
constexpr std::string_view kNoSparePages = "NOSPARE source class has no spare pages\r\n";
constexpr std::string_view kSameClass = "SAME src and dst class are identical\r\n";
constexpr std::string_view kBadSlabClass = "BADCLASS invalid src or dst class id\r\n";
constexpr std::string_view kBadWindow = "CLIENT_ERROR automove window too low or too high\r\n";
constexpr std::string_view kTooMuchWarm = "ERROR hot and warm pcts must not exceed 80\r\n";
constexpr std::string_view kBadFactors = "ERROR hot/warm age factors must be greater than 0\r\n";

constexpr uint32_t kMaxSleep = 1'000'000;  // microseconds
constexpr uint32_t kLeastMegabytes = 8;
constexpr uint32_t kMostMegabytes = 1'000'000'000;
constexpr int32_t kSlabClasses = 64;  // memcached's number of them

AdminRequest answering(std::string_view line) {
  AdminRequest request;
  request.answer = line;
  return request;
}

AdminRequest doing(AdminAction action, std::string_view answer = {}) {
  AdminRequest request;
  request.action = action;
  request.answer = answer;
  return request;
}

// As memcached: an abbreviation stands for the first word that begins with it.
bool means(std::string_view word, std::string_view name) {
  return name.starts_with(word);
}

bool parse_fraction(std::string_view word, double& out) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) return false;
  out = value;
  return true;
}

// "all", "hash" or class numbers separated by commas. Empty: one of them is not a class.
std::bitset<kShownClasses> parse_classes(std::string_view word) {
  std::bitset<kShownClasses> classes;
  if (word == "all" || word == "hash") return classes.set();
  while (!word.empty()) {
    const size_t comma = std::min(word.find(','), word.size());
    const std::string_view one = word.substr(0, comma);
    word.remove_prefix(std::min(comma + 1, word.size()));
    uint32_t number = 0;
    if (one.empty()) continue;
    if (!parse_u32(one, number) || number == 0 || number >= kShownClasses) return {};
    classes.set(number);
  }
  return classes;
}

AdminRequest crawl_or_dump(const Line& line, AdminAction action, DumpForm form) {
  AdminRequest request = doing(action, kOk);
  request.form = form;
  request.classes = parse_classes(line.word(2));
  if (request.classes.none()) {
    // memcached checks first whether the crawler is enabled, so the caller does.
    request.action = AdminAction::kCrawl;
    request.answer = kBadClass;
  }
  return request;
}

AdminRequest lru_crawler(const Line& line) {
  if (line.count == 2 && means(line.word(1), "enable")) return doing(AdminAction::kEnableCrawler);
  if (line.count == 2 && means(line.word(1), "disable")) return doing(AdminAction::kDisableCrawler);
  if (line.count != 3) return answering(kErrorLine);
  const std::string_view what = line.word(1);
  if (means(what, "crawl")) return crawl_or_dump(line, AdminAction::kCrawl, DumpForm::kMeta);
  if (means(what, "metadump")) return crawl_or_dump(line, AdminAction::kDump, DumpForm::kMeta);
  if (means(what, "mgdump")) return crawl_or_dump(line, AdminAction::kDump, DumpForm::kCommands);
  uint32_t number = 0;
  const bool is_number = parse_u32(line.word(2), number);
  if (means(what, "tocrawl")) return answering(is_number ? kOk : kBadFormat);
  if (means(what, "sleep")) return answering(!is_number ? kBadFormat : number > kMaxSleep ? kBadSleep : kOk);
  return answering(kErrorLine);
}

AdminRequest watch(const Line& line) {
  // In memcached's order, which decides what an abbreviation means. A stream without a bit stays empty here.
  constexpr std::pair<std::string_view, uint16_t> kStreams[] = {
      {"rawcmds", 0},   {"evictions", kEvictions},         {"fetchers", kFetchers}, {"mutations", kMutations},
      {"sysevents", 0}, {"connevents", kConnectionEvents}, {"proxyreqs", 0},        {"proxyevents", 0},
      {"proxyuser", 0}, {"deletions", kDeletions},
  };
  AdminRequest request = doing(AdminAction::kWatch, kOk);
  for (size_t i = 1; i < line.count; ++i) {
    const auto* const stream =
        std::ranges::find_if(kStreams, [&](const auto& row) { return means(line.word(i), row.first); });
    if (stream == std::end(kStreams)) return answering(kErrorLine);
    request.streams |= stream->second;
  }
  if (line.count == 1) request.streams = kFetchers;
  return request;
}

AdminRequest cache_memlimit(const Line& line) {
  uint32_t megabytes = 0;
  if (line.count < 2 || !parse_u32(line.word(1), megabytes)) return answering(kErrorLine);
  if (megabytes < kLeastMegabytes) return answering(kLimitTooSmall);
  if (megabytes > kMostMegabytes) return answering(kLimitInBytes);
  AdminRequest request = doing(AdminAction::kMemoryLimit, kOk);
  request.number = uint64_t{megabytes} << 20;
  return request;
}

AdminRequest slabs_reassign(const Line& line) {
  int32_t from = 0;
  int32_t to = 0;
  if (!parse_i32(line.word(2), from) || !parse_i32(line.word(3), to)) return answering(kBadFormat);
  if (from == to) return answering(kSameClass);
  const auto exists = [](int32_t number) { return number >= 0 && number < kSlabClasses; };
  return answering(exists(from) && exists(to) ? kNoSparePages : kBadSlabClass);
}

AdminRequest slabs_automove(const Line& line) {
  constexpr uint32_t kLeastWindow = 3;
  constexpr uint32_t kMostWindow = 1800;
  const std::string_view what = line.word(2);
  uint32_t number = 0;
  if (means(what, "ratio") || means(what, "freeratio")) {
    double ratio = 0;
    return answering(line.count > 3 && parse_fraction(line.word(3), ratio) ? kOk : kErrorLine);
  }
  if (means(what, "window")) {
    if (line.count < 4 || !parse_u32(line.word(3), number)) return answering(kBadFormat);
    return answering(number >= kLeastWindow && number <= kMostWindow ? kOk : kBadWindow);
  }
  if (!parse_u32(what, number)) return answering(kBadFormat);
  return answering(number <= 2 ? kOk : kErrorLine);
}

AdminRequest slabs(const Line& line) {
  if (line.count == 4 && means(line.word(1), "reassign")) return slabs_reassign(line);
  return line.count >= 3 && means(line.word(1), "automove") ? slabs_automove(line) : answering(kErrorLine);
}

AdminRequest lru_tune(const Line& line) {
  uint32_t hot = 0;
  uint32_t warm = 0;
  double hot_factor = 0;
  double warm_factor = 0;
  if (!parse_u32(line.word(2), hot) || !parse_u32(line.word(3), warm) || !parse_fraction(line.word(4), hot_factor) ||
      !parse_fraction(line.word(5), warm_factor)) {
    return answering(kErrorLine);
  }
  if (hot + warm > 80) return answering(kTooMuchWarm);
  return answering(hot_factor > 0 && warm_factor > 0 ? kOk : kBadFactors);
}

AdminRequest lru(const Line& line) {
  if (line.count < 3) return answering(kErrorLine);
  const std::string_view what = line.word(1);
  const std::string_view how = line.word(2);
  if (means(what, "tune") && line.count >= 6) return lru_tune(line);
  if (means(what, "mode")) return answering(means(how, "flat") || means(how, "segmented") ? kOk : kErrorLine);
  int32_t ttl = 0;
  return answering(means(what, "temp_ttl") && parse_i32(how, ttl) ? kOk : kErrorLine);
}

AdminRequest extstore(const Line& line) {
  constexpr std::array<std::string_view, 9> kNumbers{"item_size",    "item_age",      "low_ttl",
                                                     "recache_rate", "compact_under", "drop_under",
                                                     "max_sleep",    "max_frag",      "drop_unread"};
  if (line.count < 3) return answering(kErrorLine);
  const std::string_view what = line.word(1);
  uint32_t number = 0;
  uint32_t second = 0;
  if (means(what, "free_memchunks") && line.count > 3) {
    const bool valid = parse_u32(line.word(2), number) && parse_u32(line.word(3), second) && number < kSlabClasses;
    return answering(valid ? kOk : kErrorLine);
  }
  const auto* const name = std::ranges::find_if(kNumbers, [&](std::string_view each) { return means(what, each); });
  if (name == kNumbers.end()) return answering(kErrorLine);
  double fraction = 0;
  const bool valid = *name == "max_frag" ? parse_fraction(line.word(2), fraction) : parse_u32(line.word(2), number);
  return answering(valid ? kOk : kErrorLine);
}

AdminRequest shutdown(const Line& line) {
  const bool valid = line.count == 1 || (line.count == 2 && means(line.word(1), "graceful"));
  return doing(AdminAction::kShutdown, valid ? std::string_view{} : kBadShutdown);
}

AdminRequest refresh_certs(const Line&) {
  return doing(AdminAction::kRefreshCertificates, kOk);
}

// Not memcached's: Amazon ElastiCache's, which clients with auto discovery speak.
AdminRequest config(const Line& line) {
  const bool is_known = line.count == 3 && line.word(1) == "get" && line.word(2) == "cluster";
  return is_known ? doing(AdminAction::kShowCluster) : answering(kErrorLine);
}

AdminRequest debugtime(const Line& line) {
  constexpr size_t kMaxDigits = 10;
  AdminRequest request = doing(AdminAction::kMoveClock, kOk);
  const bool valid = line.count > 1 && line.words[1].size <= kMaxDigits && parse_u64(line.word(1), request.number);
  return valid ? request : answering(kErrorLine);
}

struct AdminCommand {
  std::string_view word;
  AdminRequest (*parse)(const Line& line);
};
constexpr AdminCommand kCommands[] = {
    {"lru_crawler", lru_crawler},
    {"watch", watch},
    {"cache_memlimit", cache_memlimit},
    {"slabs", slabs},
    {"lru", lru},
    {"extstore", extstore},
    {"shutdown", shutdown},
    {"debugtime", debugtime},
    {"refresh_certs", refresh_certs},
    {"config", config},
};

// Null: the word is not a command.
const AdminCommand* command_of(std::string_view word) {
  const auto* const row = std::ranges::find(kCommands, word, &AdminCommand::word);
  return row != std::end(kCommands) ? row : nullptr;
}

}  // namespace

bool is_admin_word(std::string_view word) {
  return command_of(word) != nullptr;
}

AdminRequest parse_admin(std::string_view text) {
  Line line{};
  line.input = text;
  line.length = line.total = text.size();
  cut_words(line);
  const AdminCommand* const command = line.count > 0 ? command_of(line.word(0)) : nullptr;
  if (command == nullptr) return answering(kErrorLine);
  AdminRequest request = command->parse(line);
  request.noreply = line.noreply() && line.word(0) != "watch";  // watch takes "noreply" for an unknown stream
  return request;
}

AdminRequest parse_cachedump(std::string_view size_class, std::string_view items) {
  if (size_class.empty() || items.empty()) return answering(kBadCommandLine);
  AdminRequest request = doing(AdminAction::kDump);
  request.form = DumpForm::kItems;
  uint32_t number = 0;
  if (!parse_u32(size_class, number) || !parse_u32(items, request.most_items)) return answering(kBadFormat);
  if (number >= kShownClasses) return answering(kIllegalClass);
  request.classes.set(number);
  return request;
}

AdminRequest parse_detail(std::string_view what) {
  if (what.empty()) return answering(kStatsDetailUsage);
  if (means(what, "on")) return doing(AdminAction::kDetailOn, kOk);
  if (means(what, "off")) return doing(AdminAction::kDetailOff, kOk);
  if (means(what, "dump")) return doing(AdminAction::kDetailDump);
  return answering(kStatsDetailUsage);
}

}  // namespace egret::memcache
