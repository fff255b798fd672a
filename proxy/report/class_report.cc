#include "proxy/report/class_report.h"

#include <algorithm>
#include <string_view>

#include "memcache/reply.h"

namespace egret::proxy {

using op::ClassField;

namespace {

using Fields = pool::ClassStats::value_type;

// The size of the store's pages, which hold items of any class.
constexpr uint64_t kPageSize = 64u << 10;

uint64_t field_of(const Fields& fields, ClassField field) {
  return fields[static_cast<size_t>(field)];
}

void add_row(std::string& text, std::string_view name, uint64_t value) {
  const size_t begin = text.size();
  text.resize(begin + memcache::max_stat(name.size()));
  const char* end = memcache::write_stat(text.data() + begin, name, value);
  text.resize(static_cast<size_t>(end - text.data()));
}

// Rows of `stats items`, in memcached's order. Field 0: Egret has no such value; the row is 0.
struct ItemsRow {
  std::string_view name;
  ClassField field = {};
};
constexpr ItemsRow kItemsRows[] = {
    {"number", ClassField::kNumber},
    {"number_hot"},
    {"number_warm"},
    {"number_cold", ClassField::kNumber},  // number_hot + number_warm + number_cold must be the number of items
    {"age_hot"},
    {"age_warm"},
    {"age", ClassField::kAge},
    {"mem_requested", ClassField::kBytes},
    {"evicted", ClassField::kEvicted},
    {"evicted_nonzero", ClassField::kEvictedNonzero},
    {"evicted_time", ClassField::kEvictedTime},
    {"outofmemory", ClassField::kOutOfMemory},
    {"tailrepairs"},
    {"reclaimed", ClassField::kReclaimed},
    {"expired_unfetched", ClassField::kExpiredUnfetched},
    {"evicted_unfetched", ClassField::kEvictedUnfetched},
    {"evicted_active", ClassField::kEvictedActive},
    {"crawler_reclaimed"},
    {"crawler_items_checked"},
    {"lrutail_reflocked"},
    {"moves_to_cold"},
    {"moves_to_warm"},
    {"moves_within_lru"},
    {"direct_reclaims"},
    {"hits_to_hot"},
    {"hits_to_warm"},
    {"hits_to_cold"},
    {"hits_to_temp"},
};

// A class as it would be if its items lay in pages of its own.
struct Slab {
  uint64_t chunk_size;
  uint64_t chunks_per_page;
  uint64_t pages;
  uint64_t chunks;

  Slab(uint32_t size_class, uint64_t number)
      : chunk_size(op::class_size(size_class)),
        chunks_per_page(std::max<uint64_t>(kPageSize / chunk_size, 1)),
        pages((number + chunks_per_page - 1) / chunks_per_page),
        chunks(pages * chunks_per_page) {}
  // An item larger than a page takes several pages.
  uint64_t bytes() const { return pages * std::max(kPageSize, chunk_size); }
};

// The store counts these only for all classes together; see `stats`.
constexpr std::string_view kSlabCounters[] = {"get_hits",  "cmd_set",  "delete_hits", "incr_hits",
                                              "decr_hits", "cas_hits", "cas_badval",  "touch_hits"};

void add_slab(std::string& text, uint32_t size_class, uint64_t number, const Slab& slab) {
  const std::string prefix = std::to_string(op::shown_class(size_class)) + ":";
  add_row(text, prefix + "chunk_size", slab.chunk_size);
  add_row(text, prefix + "chunks_per_page", slab.chunks_per_page);
  add_row(text, prefix + "total_pages", slab.pages);
  add_row(text, prefix + "total_chunks", slab.chunks);
  add_row(text, prefix + "used_chunks", number);
  add_row(text, prefix + "free_chunks", slab.chunks - number);
  add_row(text, prefix + "free_chunks_end", 0);
  for (const std::string_view name : kSlabCounters) add_row(text, prefix + std::string(name), 0);
}

}  // namespace

std::string items_report(const pool::ClassStats& classes) {
  std::string text;
  for (size_t size_class = 0; size_class < classes.size(); ++size_class) {
    const Fields& fields = classes[size_class];
    if (std::ranges::count(fields, 0u) == std::ssize(fields)) continue;
    const std::string prefix = "items:" + std::to_string(op::shown_class(static_cast<uint32_t>(size_class))) + ":";
    for (const ItemsRow& row : kItemsRows) {
      add_row(text, prefix + std::string(row.name), row.field == ClassField{} ? 0 : field_of(fields, row.field));
    }
  }
  return text.append(memcache::kEnd);
}

std::string slabs_report(const pool::ClassStats& classes) {
  std::string text;
  uint64_t active = 0;
  uint64_t bytes = 0;
  for (uint32_t size_class = 0; size_class < classes.size(); ++size_class) {
    const uint64_t number = field_of(classes[size_class], ClassField::kNumber);
    if (number == 0) continue;
    const Slab slab(size_class, number);
    add_slab(text, size_class, number, slab);
    ++active;
    bytes += slab.bytes();
  }
  add_row(text, "active_slabs", active);
  add_row(text, "total_malloced", bytes);
  return text.append(memcache::kEnd);
}

std::string sizes_report(const pool::ClassStats& classes) {
  std::string text;
  for (uint32_t size_class = 0; size_class < classes.size(); ++size_class) {
    const uint64_t number = field_of(classes[size_class], ClassField::kNumber);
    if (number > 0) add_row(text, std::to_string(op::class_size(size_class)), number);
  }
  return text.append(memcache::kEnd);
}

}  // namespace egret::proxy
