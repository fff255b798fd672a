// The parser of a connection. The first byte decides the dialect for good.
//
//   first byte 0x80 ─▶ BinaryParser        else ─▶ (AuthParser, until the client has authenticated) ─▶ TextParser
#pragma once

#include <algorithm>

#include "memcache/binary/binary_parser.h"
#include "memcache/parser.h"
#include "memcache/text/auth_parser.h"
#include "memcache/text/text_parser.h"

namespace egret::memcache {

// The protocols that a listener accepts.
enum class Protocol : uint8_t { kAuto, kText, kBinary };

// The protocol of a client.
enum class Language : uint8_t { kUnknown, kText, kBinary };

// The state of a client between two commands, as it is handed over to another process.
struct ResumeState {
  Language language = Language::kUnknown;
  bool has_authenticated = false;  // to this process or to the one before
};

class ClientParser {
 public:
  ClientParser(const Limits& limits, Protocol protocol, bool must_authenticate)
      : text_(limits), binary_(limits), auth_(limits), must_authenticate_(must_authenticate) {
    if (protocol == Protocol::kText) language_ = Language::kText;
    if (protocol == Protocol::kBinary) language_ = Language::kBinary;
    binary_.require_authentication(must_authenticate);
  }
  explicit ClientParser(const Limits& limits) : ClientParser(limits, Protocol::kAuto, false) {}

  static size_t min_buffer(const Limits& limits) {
    return std::max({TextParser::min_buffer(limits), BinaryParser::min_buffer(limits), AuthParser::min_buffer(limits)});
  }

  Step next(std::string_view input, Command& out) noexcept {
    if (language_ == Language::kUnknown) {
      if (input.empty()) return {Event::kNeedMore, 0};
      language_ = input[0] == binary::kRequestMagic ? Language::kBinary : Language::kText;
    }
    if (language_ == Language::kBinary) return binary_.next(input, out);
    return must_authenticate_ ? auth_.next(input, out) : text_.next(input, out);
  }

  void swallow_value() {
    if (language_ == Language::kBinary) return binary_.swallow_value();
    text_.swallow_value();
  }
  void skip_part(size_t bytes) {
    if (language_ == Language::kBinary) return binary_.skip_part(bytes);
    text_.skip_part(bytes);
  }

  // The client has authenticated.
  void set_authenticated() {
    must_authenticate_ = false;
    has_authenticated_ = true;
    binary_.require_authentication(false);
  }
  bool is_between_commands() const {
    return text_.is_between_commands() && binary_.is_between_commands() && auth_.is_between_commands();
  }
  ResumeState resume_state() const { return {language_, has_authenticated_}; }
  // Continues with a client of another process.
  void resume(const ResumeState& resume_state) {
    if (resume_state.language != Language::kUnknown) language_ = resume_state.language;
    if (resume_state.has_authenticated) set_authenticated();
  }
  bool must_authenticate() const { return must_authenticate_; }
  bool is_binary() const { return language_ == Language::kBinary; }

 private:
  TextParser text_;
  BinaryParser binary_;
  AuthParser auth_;
  Language language_ = Language::kUnknown;
  bool must_authenticate_;
  bool has_authenticated_ = false;
};

static_assert(DialectParser<ClientParser>);

}  // namespace egret::memcache
