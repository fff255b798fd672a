// Uses yaml-cpp's event interface, not its tree: anchors, aliases and nesting are refused as soon as they appear, so no
// document can make us copy or recurse, and duplicate keys can be seen.
#include "base/options/options_yaml.h"

#include <exception>
#include <optional>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "base/text.h"

namespace egret::base {

namespace {

// Thrown to stop the parser; parse_flat_yaml() catches it.
struct Refused {
  int line;
  std::string what;
};

// A state machine over the parser's events.
class FlatHandler final : public YAML::EventHandler {
 public:
  explicit FlatHandler(std::vector<OptionEntry>& entries) : entries_(entries) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse(mark, "aliases are not supported"); }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check(mark, "", anchor);
    if (state_ == State::kKey) refuse(mark, "expected a key, got nothing");
    if (state_ == State::kSequence) refuse(mark, named() + "expected a value, got nothing");
    if (state_ == State::kValue) finish(OptionEntry::Kind::kNothing);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check(mark, tag, anchor);
    switch (state_) {
      case State::kStart:
        refuse(mark, "expected a mapping of options (key: value), got " + base::quoted(value));
      case State::kKey:
        entries_.push_back({value, mark.line + 1, OptionEntry::Kind::kNothing, {}});
        state_ = State::kValue;
        return;
      case State::kValue:
        entries_.back().values.push_back(value);
        finish(OptionEntry::Kind::kScalar);
        return;
      case State::kSequence:
        entries_.back().values.push_back(value);
        return;
      case State::kEnd:
        return;
    }
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    check(mark, tag, anchor);
    if (state_ == State::kStart) refuse(mark, "expected a mapping of options (key: value), got a list");
    if (state_ == State::kKey) refuse(mark, "expected a key, got a list");
    if (state_ == State::kSequence) refuse(mark, named() + "expected a value, got a list in a list");
    entries_.back().kind = OptionEntry::Kind::kSequence;
    state_ = State::kSequence;
  }

  void OnSequenceEnd() override { state_ = State::kKey; }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    check(mark, tag, anchor);
    if (state_ == State::kKey) refuse(mark, "expected a key, got a mapping");
    if (state_ == State::kSequence) refuse(mark, named() + "expected a value, got a mapping");
    if (state_ == State::kValue) {
      // Its content is not read. The caller, which knows what the key expects, reports the error with the key's line.
      finish(OptionEntry::Kind::kMapping);
      throw StopReading();
    }
    state_ = State::kKey;
  }

  void OnMapEnd() override { state_ = State::kEnd; }

  struct StopReading {};

 private:
  enum class State : uint8_t {
    kStart,     // before the document's mapping
    kKey,       // in the mapping, a key comes next
    kValue,     // after a key
    kSequence,  // in a key's list
    kEnd,       // after the mapping
  };

  [[noreturn]] static void refuse(const YAML::Mark& mark, const std::string& what) {
    throw Refused{mark.line + 1, what};
  }

  static void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) refuse(mark, "anchors are not supported");
    // "?" is a plain value, "!" a quoted one: the parser's own marks.
    if (!tag.empty() && tag != "?" && tag != "!") refuse(mark, "tags are not supported, got " + base::quoted(tag));
  }

  std::string named() const { return quoted_if_odd(entries_.back().key) + ": "; }

  void finish(OptionEntry::Kind kind) {
    entries_.back().kind = kind;
    state_ = State::kKey;
  }

  std::vector<OptionEntry>& entries_;
  State state_ = State::kStart;
};

Status at_line(const std::string& file_name, int line, const std::string& what) {
  return Status::error(file_name + ":" + std::to_string(line) + ": " + what);
}

}  // namespace

Status parse_flat_yaml(std::string_view yaml, const std::string& file_name, std::vector<OptionEntry>& entries) {
  FlatHandler handler(entries);
  try {
    std::istringstream stream{std::string(yaml)};
    YAML::Parser parser(stream);
    std::vector<OptionEntry> ignored;
    FlatHandler nothing_more(ignored);
    if (parser.HandleNextDocument(handler) && parser.HandleNextDocument(nothing_more)) {
      return Status::error(file_name + ": expected one YAML document, got several");
    }
  } catch (const FlatHandler::StopReading&) {
    return Status::ok();
  } catch (const Refused& refused) {
    return at_line(file_name, refused.line, refused.what);
  } catch (const YAML::ParserException& problem) {
    return at_line(file_name, problem.mark.line + 1, "not YAML: " + quoted_if_odd(problem.msg));
  } catch (const std::exception& problem) {
    return Status::error(file_name + ": not YAML: " + quoted_if_odd(problem.what()));
  }
  return Status::ok();
}

}  // namespace egret::base
