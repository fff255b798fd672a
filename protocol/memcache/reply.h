// Text answers: fixed lines, and functions that write other lines into the caller's memory. Each function returns the
// end of its output, and needs the room that its bound states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "memcache/command.h"

namespace egret::memcache {

// --- Fixed lines
inline constexpr std::string_view kMetaNoop = "MN\r\n";
inline constexpr std::string_view kStored = "STORED\r\n";
inline constexpr std::string_view kNotStored = "NOT_STORED\r\n";
inline constexpr std::string_view kExists = "EXISTS\r\n";
inline constexpr std::string_view kNotFound = "NOT_FOUND\r\n";
inline constexpr std::string_view kDeleted = "DELETED\r\n";
inline constexpr std::string_view kTouched = "TOUCHED\r\n";
inline constexpr std::string_view kOk = "OK\r\n";
inline constexpr std::string_view kResetLine = "RESET\r\n";
inline constexpr std::string_view kEnd = "END\r\n";
inline constexpr std::string_view kCrLf = "\r\n";  // after a VALUE's bytes
inline constexpr std::string_view kCrLfEnd = "\r\nEND\r\n";

// Errors that the client's bytes cause.
inline constexpr std::string_view kErrorLine = "ERROR\r\n";
inline constexpr std::string_view kBadFormat = "CLIENT_ERROR bad command line format\r\n";
inline constexpr std::string_view kBadCommandLine = "CLIENT_ERROR bad command line\r\n";
inline constexpr std::string_view kBadDataChunk = "CLIENT_ERROR bad data chunk\r\n";
inline constexpr std::string_view kBadExptime = "CLIENT_ERROR invalid exptime argument\r\n";
inline constexpr std::string_view kBadDelta = "CLIENT_ERROR invalid numeric delta argument\r\n";
inline constexpr std::string_view kNonNumeric = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
inline constexpr std::string_view kStatsDetailUsage = "CLIENT_ERROR usage: stats detail on|off|dump\r\n";
inline constexpr std::string_view kStatsDetailNotAllowed = "CLIENT_ERROR stats detail not allowed\r\n";
inline constexpr std::string_view kBadToken = "CLIENT_ERROR bad token in command line format\r\n";
inline constexpr std::string_view kDuplicateFlag = "CLIENT_ERROR duplicate flag\r\n";
inline constexpr std::string_view kInvalidFlag = "CLIENT_ERROR invalid flag\r\n";
inline constexpr std::string_view kInvalidOrDuplicateFlag = "CLIENT_ERROR invalid or duplicate flag\r\n";
inline constexpr std::string_view kFlagsAreTooLong = "CLIENT_ERROR options flags are too long\r\n";
inline constexpr std::string_view kOpaqueTooLong = "CLIENT_ERROR opaque token too long\r\n";
inline constexpr std::string_view kBadKeyEncoding = "CLIENT_ERROR error decoding key\r\n";
inline constexpr std::string_view kBadInitial = "CLIENT_ERROR invalid numeric initial value\r\n";
inline constexpr std::string_view kBadDeltaValue = "CLIENT_ERROR invalid numeric delta value\r\n";
inline constexpr std::string_view kBadSetMode = "CLIENT_ERROR invalid mode for ms M token\r\n";
inline constexpr std::string_view kBadArithmeticMode = "CLIENT_ERROR invalid mode for ma M token\r\n";
inline constexpr std::string_view kUnauthenticated = "CLIENT_ERROR unauthenticated\r\n";
inline constexpr std::string_view kAuthFailure = "CLIENT_ERROR authentication failure\r\n";
inline constexpr std::string_view kBadTermination = "CLIENT_ERROR bad command line termination\r\n";
inline constexpr std::string_view kAuthTokenTooLong = "CLIENT_ERROR auth token too long\r\n";
inline constexpr std::string_view kBadAuthToken = "CLIENT_ERROR bad authentication token format\r\n";
inline constexpr std::string_view kFlushNotAllowed = "CLIENT_ERROR flush_all not allowed\r\n";
inline constexpr std::string_view kNotAllowed = "CLIENT_ERROR not allowed\r\n";
inline constexpr std::string_view kShutdownNotEnabled = "SERVER_ERROR: shutdown not enabled\r\n";

// Errors of the server.
inline constexpr std::string_view kTooLarge = "SERVER_ERROR object too large for cache\r\n";
inline constexpr std::string_view kOutOfMemoryStoring = "SERVER_ERROR out of memory storing object\r\n";
inline constexpr std::string_view kOutOfMemory = "SERVER_ERROR out of memory\r\n";
inline constexpr std::string_view kOutOfMemoryGet = "SERVER_ERROR out of memory writing get response\r\n";
inline constexpr std::string_view kTooManyConnections = "ERROR Too many open connections\r\n";
inline constexpr std::string_view kBackendUnavailable = "SERVER_ERROR backend unavailable\r\n";
inline constexpr std::string_view kBackendTimedOut = "SERVER_ERROR backend timed out\r\n";
inline constexpr std::string_view kBackendRefused = "SERVER_ERROR backend refused the request\r\n";
inline constexpr std::string_view kBackendForbids =
    "SERVER_ERROR the backend does not allow this proxy to do that (its option rights)\r\n";

// --- Written lines. Bounds are in bytes, for a key of `key_length`.
inline constexpr size_t kMaxDigits = 20;  // of a 64-bit number

// "VALUE <key> <flags> <length>[ <cas>]\r\n"; the value and kCrLf follow it. `cas` may be null.
constexpr size_t max_value_header(size_t key_length) {
  return 6 + key_length + 1 + 10 + 1 + 10 + 1 + kMaxDigits + 2;
}
char* write_value_header(char* out, std::string_view key, uint32_t client_flags, uint32_t length, const uint64_t* cas);

// "<number>\r\n"
inline constexpr size_t kMaxNumberLine = kMaxDigits + 2;
char* write_number(char* out, uint64_t number);

// "STAT <name> <value>\r\n"
constexpr size_t max_stat(size_t name_length, size_t value_length) {
  return 5 + name_length + 1 + value_length + 2;
}
char* write_stat(char* out, std::string_view name, std::string_view value);
constexpr size_t max_stat(size_t name_length) {
  return max_stat(name_length, kMaxDigits);
}
char* write_stat(char* out, std::string_view name, uint64_t value);

// Copies `text`; needs as much room as its length.
inline char* write_text(char* out, std::string_view text) {
  if (!text.empty()) std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

}  // namespace egret::memcache
