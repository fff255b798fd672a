// Warm restart: a store whose arena is a file continues where it was left.
//
//   create() ─▶ file is there and its superblock says "clean", and is ours ─▶ everything is as it was, at once ─┐
//            └▶ else: empty, "in use"                                                                             │
//   ... ◀─ the first begin_pass(): "in use" ◀───────────────────────────────────────────────────────────────────────┘
//    └▶ ~Store(): state, checksum, "clean"
//
// Opening the stores may take a minute; a process that ends meanwhile leaves the file as it was. A process that is
// killed later leaves "in use": the file may be inconsistent, so the next store starts empty, and says so. Times are of
// the wall clock, so the time between two runs counts for expiry.
#include <atomic>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "op/hash.h"
#include "store/store.h"
#include "store/superblock.h"

namespace egret::store {

namespace {
using op::StatId;

uint64_t checksum_of(const Superblock& block) {
  const size_t from = offsetof(Superblock, memory);
  const size_t to = offsetof(Superblock, membership);
  return op::hash_key({reinterpret_cast<const char*>(&block) + from, to - from}, Superblock::kMagic);
}

// Why no store can use this file, whatever its options; null: it is usable.
const char* unusable_because(const Superblock& block) {
  if (block.magic == 0) return "the file is new";
  if (block.magic != Superblock::kMagic) return "the file is not a store's";
  if (block.layout_version != Superblock::kLayoutVersion) return "the file is another version's";
  if (block.state != Superblock::State::kClean) return "the process before was killed, not stopped";
  if (block.checksum != checksum_of(block)) return "the file is damaged";
  return nullptr;
}

const char* unfit_because(const Superblock& block, const StoreConfig& config, const Arena& arena) {
  if (block.memory != arena.size()) return "memory has changed";
  if (block.item_size_max != config.item_size_max) return "item_size_max has changed";
  if (block.evict != (config.evict ? 1u : 0u)) return "evict has changed";
  if (block.cas_stride != config.cas_stride || block.cas_offset != config.cas_offset) return "partitions has changed";
  if (block.hash_seed != config.hash_seed) return "the hash seed has changed";
  return nullptr;
}
}  // namespace

const Superblock* Store::open_file(const StoreConfig& config, const Arena& arena, const Layout& layout,
                                   std::string* why_empty) {
  auto* const block = reinterpret_cast<Superblock*>(arena.data());
  const char* why = nullptr;
  if (arena.file_was() == FileWas::kOfAnotherSize) {
    why = "the file has another size: memory or partitions has changed";
  } else {
    why = unusable_because(*block);
    if (why == nullptr) why = unfit_because(*block, config, arena);
  }
  if (why == nullptr) return block;
  *why_empty = why;
  block->state = Superblock::State::kInUse;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // Pages need no clearing, but the fixed part must start as zeros. The superblock is cleared separately.
  std::memset(static_cast<void*>(arena.data() + sizeof *block), 0, layout.fixed * kPageSize - sizeof *block);
  *block = {};
  block->magic = Superblock::kMagic;
  block->layout_version = Superblock::kLayoutVersion;
  block->state = Superblock::State::kInUse;
  return nullptr;
}

// Called before the first change of the file: a process killed after that must not leave the file marked clean.
void Store::mark_in_use() {
  is_untouched_ = false;
  reinterpret_cast<Superblock*>(arena_.data())->state = Superblock::State::kInUse;
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

base::Expected<uint64_t> kept_hash_seed(const std::string& path) {
  // O_NONBLOCK: the path may be a pipe, which create() refuses.
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.is_open()) {
    if (errno == ENOENT) return base::Status::error("the file is new");
    return base::Status::system_error("cannot open " + path, errno);
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != ::geteuid()) {
    return base::Status::error("the file is not ours");  // create() says what is wrong with it
  }
  Superblock block{};
  if (::read(file.get(), &block, sizeof block) != static_cast<ssize_t>(sizeof block))
    return base::Status::error("the file is not a store's");
  if (const char* why = unusable_because(block); why != nullptr) return base::Status::error(why);
  return block.hash_seed;
}

void Store::restore(const Superblock& kept) {
  is_untouched_ = true;
  items_.version = kept.version;
  items_.flushed_before = kept.flushed_before;
  flush_second_ = kept.flush_second;
  items_.expiring = kept.expiring_items;
  if (items_.flushed_before != 0) sweeper_.on_flush();
  if (kept.membership_check == (kept.membership ^ kept.checksum)) purger_.set_membership(kept.membership);
  ghosts_.fit(kept.items);
  items_.counters[StatId::kBytes] = kept.bytes;
  items_.counters[StatId::kCurrItems] = kept.items;
  for (size_t i = 0; i < op::kSizeClasses; ++i) {
    items_.counters.classes[i].number = kept.classes[i].number;
    items_.counters.classes[i].bytes = kept.classes[i].bytes;
  }
}

void Store::save() {
  if (items_.log.draining() != kNoPage) items_.log.stop_drain();
  while (items_.pages.withheld() > 0) items_.pages.take_back();  // a limit changed at run time ends with the process
  auto& block = *reinterpret_cast<Superblock*>(arena_.data());
  block.memory = arena_.size();
  block.hash_seed = config_.hash_seed;
  block.cas_stride = config_.cas_stride;
  block.cas_offset = config_.cas_offset;
  block.item_size_max = config_.item_size_max;
  block.evict = config_.evict ? 1 : 0;
  block.version = items_.version;
  block.flushed_before = items_.flushed_before;
  block.expiring_items = items_.expiring;
  block.flush_second = flush_second_;
  block.pages = items_.pages.state();
  block.index = items_.index.state();
  block.log = items_.log.state();
  block.bytes = items_.counters[StatId::kBytes];
  block.items = items_.counters[StatId::kCurrItems];
  for (size_t i = 0; i < op::kSizeClasses; ++i)
    block.classes[i] = {items_.counters.classes[i].number, items_.counters.classes[i].bytes};
  block.checksum = checksum_of(block);
  block.membership = purger_.membership();
  block.membership_check = block.membership ^ block.checksum;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // "clean" is written last
  block.state = Superblock::State::kClean;
}

}  // namespace egret::store
