#include "memcache/reply.h"

#include <charconv>

namespace egret::memcache {
namespace {

// The caller has room for kMaxDigits, so to_chars() cannot fail.
char* digits(char* out, uint64_t number) {
  if (number < 10) {  // client flags, mostly
    *out = static_cast<char>('0' + number);
    return out + 1;
  }
  return std::to_chars(out, out + kMaxDigits, number).ptr;
}

}  // namespace

char* write_value_header(char* out, std::string_view key, uint32_t client_flags, uint32_t length, const uint64_t* cas) {
  out = write_text(out, "VALUE ");
  out = write_text(out, key);
  *out++ = ' ';
  out = digits(out, client_flags);
  *out++ = ' ';
  out = digits(out, length);
  if (cas != nullptr) {
    *out++ = ' ';
    out = digits(out, *cas);
  }
  return write_text(out, kCrLf);
}

char* write_number(char* out, uint64_t number) {
  return write_text(digits(out, number), kCrLf);
}

char* write_stat(char* out, std::string_view name, std::string_view value) {
  out = write_text(out, "STAT ");
  out = write_text(out, name);
  *out++ = ' ';
  out = write_text(out, value);
  return write_text(out, kCrLf);
}

char* write_stat(char* out, std::string_view name, uint64_t value) {
  char number[kMaxDigits];
  return write_stat(out, name, std::string_view(number, static_cast<size_t>(digits(number, value) - number)));
}

}  // namespace egret::memcache
