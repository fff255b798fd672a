#include "op/records.h"

#include <cstring>

namespace egret::op {

void append_record(std::string& to, RecordHead head, std::string_view key) {
  head.key_length = static_cast<uint8_t>(key.size());
  to.append(reinterpret_cast<const char*>(&head), sizeof head);
  to.append(key);
}

bool take_record(std::string_view& records, Record& record) {
  if (records.size() < sizeof record.head) return false;
  std::memcpy(&record.head, records.data(), sizeof record.head);
  const size_t length = record.head.key_length;
  if (length == 0 || length > kMaxKeyLength || record.head.reserved != 0) return false;
  if (records.size() - sizeof record.head < length) return false;
  record.key = records.substr(sizeof record.head, length);
  records.remove_prefix(sizeof record.head + length);
  return true;
}

RecordPage cut_records(std::string_view records, uint64_t cursor, size_t room) {
  if (records.size() <= room) return {records, cursor};
  std::string_view left = records;
  size_t fitting = 0;
  for (Record record; take_record(left, record); cursor = record.head.cursor) {
    const size_t end = records.size() - left.size();
    if (end > room) break;
    fitting = end;
  }
  return {records.substr(0, fitting), cursor};
}

}  // namespace egret::op
