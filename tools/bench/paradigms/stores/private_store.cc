#include "bench_paradigms/stores/private_store.h"

#include <cstring>

namespace egret::bench_paradigms {

std::optional<uint32_t> PrivateStore::get(std::string_view key, std::span<std::byte> to) {
  const uint32_t item = table_.find(key);
  if (item == ItemTable::kNone) return std::nullopt;
  const std::string_view value = table_.value(item);
  std::memcpy(to.data(), value.data(), value.size());
  return static_cast<uint32_t>(value.size());
}

bool PrivateStore::put(std::string_view key, std::string_view value) {
  uint32_t item = table_.find(key);
  if (item == ItemTable::kNone) item = table_.add(key);
  return item != ItemTable::kNone && table_.set_value(item, value);
}

bool PrivateStore::erase(std::string_view key) {
  const uint32_t item = table_.find(key);
  if (item == ItemTable::kNone) return false;
  table_.erase(item);
  return true;
}

}  // namespace egret::bench_paradigms
