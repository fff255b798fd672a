// Warm restart: a store whose arena is a file goes on where it was left.
//
//   create() ─▶ file is there and its superblock says "clean", and is ours ─▶ everything is as it was, at once
//            └▶ else: empty                      ─▶ "in use" is written ─▶ ... ─▶ ~Store(): state, checksum, "clean"
//
// A process that was killed leaves "in use": what it was doing is unknown, so the store starts empty, and says so.
// Times are of the wall clock, so the time that passed between counts for expiry.
#include <cstring>

#include "op/hash.h"
#include "store/store.h"
#include "store/superblock.h"

namespace egret::store {

namespace {
using op::StatId;
}

Store::Superblock& Store::superblock() const {
  return *reinterpret_cast<Superblock*>(arena_.data());
}

uint64_t Store::checksum_of(const Superblock& block) {
  const size_t from = offsetof(Superblock, memory);
  return op::hash_key({reinterpret_cast<const char*>(&block) + from, sizeof block - from}, Superblock::kMagic);
}

const Store::Superblock* Store::kept_superblock(const StoreConfig& config, const Arena& arena, std::string* note) {
  const auto* kept = reinterpret_cast<const Superblock*>(arena.data());
  const auto why_not = [&]() -> const char* {
    if (!arena.was_there() || kept->magic == 0) return "a new file";
    if (kept->magic != Superblock::kMagic) return "the file is not a store's";
    if (kept->layout_version != Superblock::kLayoutVersion) return "the file is of another version";
    if (kept->state != Superblock::State::kClean) return "the last process was not stopped, but killed";
    if (kept->checksum != checksum_of(*kept)) return "the file is damaged";
    if (kept->memory != arena.size() || kept->item_size_max != config.item_size_max ||
        kept->evict != (config.evict ? 1u : 0u) || kept->hash_seed != config.hash_seed ||
        kept->cas_stride != config.cas_stride || kept->cas_offset != config.cas_offset) {
      return "it was kept under other options";
    }
    return nullptr;
  };
  if (const char* why = why_not(); why != nullptr) {
    *note = std::string("started empty: ") + why;
    return nullptr;
  }
  *note = std::to_string(kept->items) + " items kept";
  return kept;
}

std::optional<uint64_t> Store::kept_hash_seed(const std::string& path) {
  Superblock block{};
  FILE* const file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr) return std::nullopt;
  const bool whole = std::fread(&block, sizeof block, 1, file) == 1;
  std::fclose(file);
  const bool is_good = whole && block.magic == Superblock::kMagic &&
                       block.layout_version == Superblock::kLayoutVersion && block.state == Superblock::State::kClean &&
                       block.checksum == checksum_of(block);
  return is_good ? std::optional(block.hash_seed) : std::nullopt;
}

void Store::restore(const Superblock& kept) {
  version_ = kept.version;
  flushed_before_ = kept.flushed_before;
  flush_second_ = kept.flush_second;
  expiring_items_ = kept.expiring_items;
  flush_unswept_ = flushed_before_ != 0;
  counters_[StatId::kBytes] = kept.bytes;
  counters_[StatId::kCurrItems] = kept.items;
  for (size_t i = 0; i < op::kSizeClasses; ++i) {
    counters_.classes[i].number = kept.classes[i].number;
    counters_.classes[i].bytes = kept.classes[i].bytes;
  }
}

void Store::mark_in_use() {
  Superblock& block = superblock();
  block.magic = Superblock::kMagic;
  block.layout_version = Superblock::kLayoutVersion;
  block.state = Superblock::State::kInUse;
}

void Store::save() {
  if (log_.draining() != kNoPage) log_.stop_drain();
  Superblock& block = superblock();
  block.memory = arena_.size();
  block.hash_seed = config_.hash_seed;
  block.cas_stride = config_.cas_stride;
  block.cas_offset = config_.cas_offset;
  block.item_size_max = config_.item_size_max;
  block.evict = config_.evict ? 1 : 0;
  block.version = version_;
  block.flushed_before = flushed_before_;
  block.expiring_items = expiring_items_;
  block.flush_second = flush_second_;
  block.saved_second = now_;
  block.pages = pages_.state();
  block.index = index_.state();
  block.log = log_.state();
  block.bytes = counters_[StatId::kBytes];
  block.items = counters_[StatId::kCurrItems];
  for (size_t i = 0; i < op::kSizeClasses; ++i)
    block.classes[i] = {counters_.classes[i].number, counters_.classes[i].bytes};
  block.checksum = checksum_of(block);
  block.state = Superblock::State::kClean;
}

}  // namespace egret::store
