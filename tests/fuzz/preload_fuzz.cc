// The bytes that a preloaded program sends, to a backend whose answers are the fuzzer's as well (steered_backend.h). Cut anywhere
// they lead to what one command after the other would: the same answers in their order, each whole, none missing and none too
// much; the same changes at the backend; the same commands beside the slots. When responses do not come, are malformed, or the
// session ends, a command may be answered as failed instead, and the engine says so (has_failed). What the engine gives away when
// its connection takes over is the rest of what was put, byte for byte.
//
// The input: 4 bytes, the lengths of the pieces in which the program sends. If the top bit of the first one is set, there follow
// a byte (which ops the backend refuses), the length of the backend's plan, the length of its mishaps, the plan and the mishaps.
// The rest is what the program sends.
#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "client/preload/bytes_engine.h"
#include "client/process/fork.h"
#include "input.h"
#include "memcache/reply.h"
#include "memcache/translate.h"
#include "steered_backend.h"

using namespace egret;
using memcache::CommandKind;
using memcache::Event;
using op::ResultCode;

namespace {

constexpr uint64_t kLongestWaitNs = 60'000'000'000;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// --- what a program hears

struct Said {
  std::string answers;
  std::vector<std::string> aside;
  std::optional<std::string> left;  // given away at the end
  size_t put = 0;                   // bytes
  bool is_over = false;
  bool has_failed = false;
};

// What comes of `bytes`, put in pieces of these lengths in turn.
class Play {
 public:
  explicit Play(client::Engine& engine) : engine_(engine), subject_(engine) {}

  Said run(std::string_view bytes, const std::vector<size_t>& lengths) {
    size_t turn = 0;
    while (!bytes.empty() && !is_at_end()) {
      const size_t length = std::min(bytes.size(), lengths[turn++ % lengths.size()]);
      subject_.put(bytes.substr(0, length));
      bytes.remove_prefix(length);
      said_.put += length;
      subject_.poll();
      take();
    }
    while (!is_at_end()) {
      wait();
      const size_t before = said_.aside.size();
      take();
      if (said_.aside.size() == before) break;
    }
    said_.has_failed = subject_.has_failed();
    return std::move(said_);
  }

 private:
  bool is_at_end() const { return said_.left.has_value() || said_.is_over; }
  // As a socket does that blocks. All must be answered.
  void wait() {
    const auto is_done = [this] {
      subject_.collect();
      return !subject_.is_awaited();
    };
    EGRET_CHECK(engine_.wait(is_done, engine_.clock().now_ns() + kLongestWaitNs));
  }
  void take() {
    while (subject_.has_aside() && !is_at_end()) {
      said_.aside.push_back(subject_.aside());
      if (subject_.aside_end() == preload::AsideEnd::kNever) {
        said_.left = subject_.leave();
      } else {
        subject_.resume();
      }
    }
    said_.answers += subject_.output();
    subject_.take(subject_.output().size());
    said_.is_over = subject_.is_over();
  }

  client::Engine& engine_;
  preload::BytesEngine subject_;
  Said said_;
};

// --- what it must hear

// In their order: the bytes that may stand there; the first of them if nothing fails.
using Expected = std::vector<std::vector<std::string>>;

// One command after the other, each with the answer that the backend has for it.
class Reference {
 public:
  // `may_fail`: the backend has not answered every op.
  Reference(const fuzz::Answers& answers, std::string_view program, bool may_fail)
      : answers_(answers), may_fail_(may_fail) {
    for (size_t at = 0; !is_over && !left_at;) {
      const memcache::Step step = parser_.next(program.substr(at), command_);
      if (step.event == Event::kNeedMore) break;
      act(step.event, program.substr(at + step.skipped, step.consumed - step.skipped), at + step.skipped);
      at += step.consumed;
    }
  }

  Expected expected;
  fuzz::Changes changes;
  std::vector<std::string> aside;
  std::optional<size_t> left_at;  // the first byte that the real connection is to answer; none: slots answer all
  bool is_over = false;

  bool is_binary() const { return parser_.is_binary(); }

 private:
  void act(Event event, std::string_view bytes, size_t at) {
    switch (event) {
      case Event::kKey:
        return ask(command_.value);
      case Event::kEndOfKeys:
        return end_retrieval();
      case Event::kCommand:
        return on_command(bytes, at);
      case Event::kValueBegin:
        key_ = command_.key;
        return collected_.clear();
      case Event::kValuePart:
        collected_.append(command_.value);
        return;
      case Event::kValueEnd:
        command_.key = key_;
        if (command_.terminator_ok) return ask(collected_);
        if (!command_.noreply) expected.push_back({std::string(memcache::kBadDataChunk)});
        return;
      case Event::kError:
      case Event::kClose:
        is_over = event == Event::kClose;
        forget_retrieval();  // none of its values is sent, as memcached
        expected.push_back({std::string(command_.error)});
        return;
      case Event::kNeedMore:
        return;
    }
  }

  void on_command(std::string_view bytes, size_t at) {
    const CommandKind kind = command_.kind;
    if (memcache::needs_store(kind) && kind != CommandKind::kFlushAll) return ask(command_.value);
    if (kind == CommandKind::kNoop) {
      op::Result result;
      result.code = ResultCode::kOk;
      memcache::Question question;
      memcache::ask(command_, 0, question);
      expected.push_back({is_binary() ? written(question, {}, result) : std::string(memcache::kMetaNoop)});
      return;
    }
    aside.emplace_back(bytes);
    const bool returns = kind == CommandKind::kVersion || kind == CommandKind::kVerbosity ||
                         kind == CommandKind::kFlushAll || kind == CommandKind::kStats;
    if (!returns) left_at = at;
  }

  void ask(std::string_view value) {
    op::Op op = memcache::to_op(command_);
    op.value = memcache::is_storage(command_.kind) ? value : std::string_view();
    changes.add(op);
    memcache::Question question;
    memcache::ask(command_, op.options, question);
    std::vector<std::byte> memory;
    const op::Result right = answers_.answer_of(op, memory);
    std::vector<op::Result> results{right};
    for (const ResultCode code : {ResultCode::kSessionLost, ResultCode::kTimedOut, ResultCode::kNotSent}) {
      if (may_fail_) results.emplace_back().code = code;
    }
    if (memcache::is_retrieval(command_.kind) && question.is_classic()) return add_key(question, op.key, results);
    std::vector<std::string>& choice = expected.emplace_back();
    const bool is_read = op.code == op::OpCode::kGet;
    for (const op::Result& result : results) {
      choice.push_back(is_read && memcache::has_value(question, result) ? with_value(question, op.key, result)
                                                                        : written(question, op.key, result));
    }
  }

  // Of a classic retrieval: the first key that fails replaces all of its answer. `results`: the right one, and the others.
  void add_key(const memcache::Question& question, std::string_view key, std::span<const op::Result> results) {
    const std::string_view failure = memcache::retrieval_error(results[0]);
    if (right_failure_.empty()) right_failure_ = failure;
    if (results[0].code == ResultCode::kHit) retrieval_ += with_value(question, key, results[0]);
    for (const op::Result& result : results) {
      if (const auto line = memcache::retrieval_error(result); !line.empty()) failures_.insert(line);
    }
  }
  void end_retrieval() {
    std::vector<std::string>& choice = expected.emplace_back();
    choice.emplace_back(right_failure_.empty() ? retrieval_.append(memcache::kEnd) : right_failure_);
    for (const std::string_view failure : failures_) choice.emplace_back(failure);
    forget_retrieval();
  }
  void forget_retrieval() {
    retrieval_.clear();
    failures_.clear();
    right_failure_ = {};
  }

  static std::string written(const memcache::Question& question, std::string_view key, const op::Result& result) {
    std::string bytes(memcache::max_answer(question, key.size()), '\0');
    bytes.resize(static_cast<size_t>(memcache::write_answer(bytes.data(), question, key, result) - bytes.data()));
    return bytes;
  }
  static std::string with_value(const memcache::Question& question, std::string_view key, const op::Result& result) {
    std::string bytes(memcache::max_head(question, key.size()), '\0');
    char* const end = memcache::write_head(bytes.data(), question, key, result, result.total_length);
    bytes.resize(static_cast<size_t>(end - bytes.data()));
    return bytes.append(result.value).append(memcache::tail(question));
  }

  const fuzz::Answers& answers_;
  const bool may_fail_;
  memcache::ClientParser parser_{memcache::Limits{}};
  memcache::Command command_;
  std::string key_, collected_;
  std::string retrieval_;                // of the present one, if no key fails
  std::string_view right_failure_;       // by the backend's own answers; empty: none
  std::set<std::string_view> failures_;  // all that may stand in its place
};

// Whether `answers` are the expected ones, each once. `may_fail`: or its others.
bool are_expected(std::string_view answers, const Expected& expected, bool may_fail) {
  std::set<size_t> ends{0};
  for (const std::vector<std::string>& choice : expected) {
    std::set<size_t> next;
    for (const size_t end : ends) {
      for (const std::string& bytes : std::span(choice).first(may_fail ? choice.size() : 1)) {
        if (answers.substr(end).starts_with(bytes)) next.insert(end + bytes.size());
      }
    }
    ends = std::move(next);
  }
  return ends.contains(answers.size());
}

// --- the form of it, whatever was answered

void check_packets(std::string_view bytes) {
  while (!bytes.empty()) {
    EGRET_CHECK(bytes.size() >= memcache::binary::kHead);
    const auto at = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(bytes[i])); };
    const size_t body = at(8) << 24 | at(9) << 16 | at(10) << 8 | at(11);
    EGRET_CHECK(at(0) == 0x81 && (at(2) << 8 | at(3)) + at(4) <= body);
    EGRET_CHECK(body <= bytes.size() - memcache::binary::kHead);
    bytes.remove_prefix(memcache::binary::kHead + body);
  }
}

// "VALUE <key> <flags> <length> ..." and "VA <length> ..." have a value behind them. Keys have any bytes but a space.
std::optional<size_t> length_of_value(std::string_view line) {
  const auto skip_words = [&](int count) {
    for (int i = 0; i < count; ++i) line.remove_prefix(std::min(line.find(' '), line.size() - 1) + 1);
  };
  if (line.starts_with("VALUE ")) {
    skip_words(3);
  } else if (line.starts_with("VA ")) {
    skip_words(1);
  } else {
    return std::nullopt;
  }
  size_t length = 0;
  EGRET_CHECK(std::from_chars(line.data(), line.data() + line.size(), length).ec == std::errc());
  return length;
}

void check_lines(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t end = bytes.find("\r\n");
    EGRET_CHECK(end != std::string_view::npos);
    const std::optional<size_t> length = length_of_value(bytes.substr(0, end));
    bytes.remove_prefix(end + 2);
    if (!length) continue;
    EGRET_CHECK(*length + 2 <= bytes.size() && bytes.substr(*length, 2) == "\r\n");
    bytes.remove_prefix(*length + 2);
  }
}

// --- one input

// Such a line may end the connection or not, by the way it arrives.
bool has_long_line(std::string_view program) {
  for (size_t start = 0; start < program.size();) {
    const size_t end = std::min(program.find('\n', start), program.size());
    if (end - start > memcache::TextParser::kMaxLine) return true;
    start = end + 1;
  }
  return false;
}

struct Script {
  std::vector<size_t> lengths;
  uint64_t refusals = ~uint64_t{0};  // all of them: no backend is there
  std::string_view plan, mishaps, program;
  bool is_nowhere() const { return refusals == ~uint64_t{0}; }
};

Script read(fuzz::Input& input, size_t size) {
  Script script;
  const auto first = input.take<uint8_t>();
  script.lengths.push_back(1 + first % 128u);
  for (int i = 0; i < 3; ++i) script.lengths.push_back(1 + input.take<uint8_t>());
  if (first >= 128) {
    script.refusals = input.take<uint8_t>();
    const auto plan = input.take<uint8_t>(), mishaps = input.take<uint8_t>();
    script.plan = text_of(input.bytes(plan));
    script.mishaps = text_of(input.bytes(mishaps));
  }
  script.program = text_of(input.bytes(size));
  return script;
}

client::Settings settings_for(const Script& script) {
  client::Settings settings;
  settings.members.push_back({"shm:/nowhere", "nowhere", 1});
  settings.most_pending = 64;
  settings.value_memory = 32 << 20;
  settings.session.worker_id = 1;
  settings.session.window = fuzz::SteeredBackend::kWindow;
  if (script.is_nowhere()) settings.session.backoff_min_ns = settings.session.backoff_max_ns = uint64_t{1} << 60;
  return settings;
}

// What the program has heard, if the backend has not lied and every op had the same chance.
std::string play(const Script& script, const std::vector<size_t>& lengths) {
  fuzz::SteeredBackend backend(script.plan, script.mishaps, script.refusals);
  client::Engine engine(settings_for(script), backend.clock, {}, fuzz::SteeredBackend::connect);
  const Said said = Play(engine).run(script.program, lengths);
  const Reference reference(backend.answers, script.program, backend.has_failed);
  reference.is_binary() ? check_packets(said.answers) : check_lines(said.answers);
  if (said.is_over && has_long_line(script.program)) return {};  // perhaps before the reference's end
  EGRET_CHECK(said.is_over == reference.is_over && said.aside == reference.aside);
  EGRET_CHECK(said.left.has_value() == reference.left_at.has_value());
  if (said.left) EGRET_CHECK(*said.left == script.program.substr(*reference.left_at, said.put - *reference.left_at));
  if (backend.has_lied) return {};
  EGRET_CHECK(are_expected(said.answers, reference.expected, true));
  EGRET_CHECK(said.has_failed || are_expected(said.answers, reference.expected, false));
  if (backend.has_failed) return script.is_nowhere() ? said.answers : std::string();
  EGRET_CHECK(!said.has_failed && backend.changes == reference.changes);
  return said.answers;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  [[maybe_unused]] static const bool is_installed = (client::ForkGuard::install(), true);
  fuzz::Input input(data, size);
  const Script script = read(input, size);
  const std::string whole = play(script, {script.program.size() + 1});
  const std::string cut = play(script, script.lengths);
  EGRET_CHECK(whole == cut || whole.empty() || cut.empty());
  return 0;
}
