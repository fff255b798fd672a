// Parses the operator's commands, which concern the server instead of one key, with memcached's words and answers.
// Commands that have no meaning here (slab pages, LRU segments, external storage) are checked and answered as memcached
// does, and change nothing.
#pragma once

#include <bitset>
#include <cstdint>
#include <string_view>

namespace egret::memcache {

// The first word of such a line. `stats cachedump` and `stats detail` are two more: see below.
bool is_admin_word(std::string_view word);

enum class AdminAction : uint8_t {
  kAnswer,  // send `answer`, nothing else
  kEnableCrawler,
  kDisableCrawler,
  kCrawl,        // `answer`, if the crawler is enabled
  kDump,         // `form`, `classes`; if the crawler is enabled or the form is kItems
  kMemoryLimit,  // `number` bytes, for all backends together
  kMoveClock,    // debugtime: advance by `number` seconds
  kWatch,        // `streams`
  kShutdown,
  kRefreshCertificates,
  kShowCluster,  // config get cluster
  kDetailOn,
  kDetailOff,
  kDetailDump,
};

// How a dump writes an item.
enum class DumpForm : uint8_t {
  kMeta,      // lru_crawler metadump: all metadata
  kCommands,  // lru_crawler mgdump: the mg command that reads it
  kItems,     // stats cachedump: key, length and exptime of items with text keys
};

// Streams of `watch`. memcached's others (sysevents, rawcmds, the proxy's) are accepted and stay empty.
enum WatchStream : uint16_t {
  kFetchers = 1 << 0,
  kMutations = 1 << 1,
  kEvictions = 1 << 2,
  kConnectionEvents = 1 << 3,
  kDeletions = 1 << 4,
};

inline constexpr uint32_t kShownClasses = 97;  // operators see size classes numbered from 1 on

struct AdminRequest {
  AdminAction action = AdminAction::kAnswer;
  bool noreply = false;
  DumpForm form = DumpForm::kMeta;
  uint16_t streams = 0;     // WatchStream bits
  uint32_t most_items = 0;  // kItems; 0: no limit
  uint64_t number = 0;
  std::string_view answer;  // static
  std::bitset<kShownClasses> classes;
  bool without_smallest = false;  // kItems: those of class 1 are listed already
};

// `line`: from the command word on, without its end.
AdminRequest parse_admin(std::string_view line);
// `stats cachedump <class> <items>` and `stats detail on|off|dump`, by their words.
AdminRequest parse_cachedump(std::string_view size_class, std::string_view items);
AdminRequest parse_detail(std::string_view what);

inline constexpr std::string_view kCrawlerDisabled = "CLIENT_ERROR lru crawler disabled\r\n";
inline constexpr std::string_view kCrawlerBusy = "BUSY currently processing crawler request\r\n";
inline constexpr std::string_view kCrawlerRuns = "ERROR failed to start lru crawler thread\r\n";
inline constexpr std::string_view kCrawlerDoesNotRun = "ERROR failed to stop lru crawler thread\r\n";
inline constexpr std::string_view kDumpNotAllowed = "ERROR metadump not allowed\r\n";
inline constexpr std::string_view kKeyDumpNotAllowed = "ERROR key dump not allowed\r\n";
inline constexpr std::string_view kCachedumpNotAllowed = "CLIENT_ERROR stats cachedump not allowed\r\n";
inline constexpr std::string_view kWatchPipelined = "ERROR cannot pipeline other commands before watch\r\n";
inline constexpr std::string_view kDumpPipelined = "ERROR cannot pipeline other commands before metadump\r\n";
inline constexpr std::string_view kKeyDumpPipelined = "ERROR cannot pipeline other commands before mgdump\r\n";
inline constexpr std::string_view kWatchNotAllowed = "CLIENT_ERROR watch commands not allowed\r\n";
inline constexpr std::string_view kTooManyWatchers = "WATCHER_TOO_MANY log watcher limit reached\r\n";
inline constexpr std::string_view kMetaEnd = "EN\r\n";
inline constexpr std::string_view kNoTls = "Error TLS not enabled\r\n";
inline constexpr std::string_view kLimitImpossible = "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n";

}  // namespace egret::memcache
