// The operator's commands: those that need no backend, and those that ask all of them.
#include <csignal>

#include <unistd.h>

#include "memcache/reply.h"
#include "proxy/commands/dispatcher.h"

namespace egret::proxy {

using memcache::AdminAction;
using memcache::AdminRequest;
using memcache::DumpForm;

namespace {

std::string_view pipelined_line(const AdminRequest& request) {
  if (request.action == AdminAction::kWatch) return memcache::kWatchPipelined;
  return request.form == DumpForm::kCommands ? memcache::kKeyDumpPipelined : memcache::kDumpPipelined;
}

std::string_view not_allowed_line(DumpForm form) {
  switch (form) {
    case DumpForm::kMeta:
      return memcache::kDumpNotAllowed;
    case DumpForm::kCommands:
      return memcache::kKeyDumpNotAllowed;
    case DumpForm::kItems:
      break;
  }
  return memcache::kCachedumpNotAllowed;
}

}  // namespace

// In its turn: what was asked before is answered first, and nothing after it is read until it is.
bool Dispatcher::on_admin(const AdminRequest& request) {
  command_.noreply = request.noreply;
  if (is_pipelined(request)) {
    replies_.push_text(pipelined_line(request));
    return true;
  }
  if (!replies_.empty()) return false;
  AdminState& state = stats_.admin;
  switch (request.action) {
    case AdminAction::kDump:
      begin_dump(request);
      return true;
    case AdminAction::kMemoryLimit:
      // Backends have equal parts of it, as `limit_maxbytes` is the sum of theirs.
      return ask_all(op::AdminVerb::kMemoryLimit, request.number / router_.sessions().size());
    case AdminAction::kMoveClock:
      return ask_all(op::AdminVerb::kMoveClock, request.number);
    case AdminAction::kWatch:
      answer_line(begin_watch(request.streams));
      return true;
    case AdminAction::kShutdown:
      shut_down(request);
      return true;
    case AdminAction::kRefreshCertificates:
      answer_line(refresh_certificates());
      return true;
    case AdminAction::kDetailOn:
    case AdminAction::kDetailOff:
      state.prefixes.turn(request.action == AdminAction::kDetailOn);
      answer_line(request.answer);
      return true;
    case AdminAction::kDetailDump:
      answer_line(state.prefixes.report());
      return true;
    case AdminAction::kEnableCrawler:
      answer_line(state.crawler_is_enabled.exchange(true) ? memcache::kCrawlerRuns : memcache::kOk);
      return true;
    case AdminAction::kDisableCrawler:
      answer_line(state.crawler_is_enabled.exchange(false) ? memcache::kOk : memcache::kCrawlerDoesNotRun);
      return true;
    case AdminAction::kCrawl:
      answer_line(state.crawler_is_enabled ? request.answer : memcache::kCrawlerDisabled);
      return true;
    case AdminAction::kAnswer:
      answer_line(request.answer);
      return true;
  }
  return true;
}

// A watch or a crawl right behind other commands is refused by memcached, but for those that it answers at once:
// retrievals.
bool Dispatcher::is_pipelined(const AdminRequest& request) const {
  const bool minds = request.action == AdminAction::kWatch ||
                     (request.action == AdminAction::kDump && request.form != DumpForm::kItems);
  return minds && !held_ && (!replies_.ends_in_retrieval() || output_.size() > 0);
}

void Dispatcher::answer_line(std::string_view line) {
  if (!command_.noreply) replies_.push_bytes(line);
}

// --- dumps

void Dispatcher::begin_dump(const AdminRequest& request) {
  const bool is_crawl = request.form != DumpForm::kItems;
  if (is_crawl && !stats_.admin.crawler_is_enabled) return answer_line(memcache::kCrawlerDisabled);
  if (!config_->allow_dump) return answer_line(not_allowed_line(request.form));
  if (stats_.admin.is_dumping.exchange(true)) return answer_line(memcache::kCrawlerBusy);
  dump_ = new Dump(router_, request, output_, *this);
  dump_->go_on();
}

void Dispatcher::on_dump_text(std::string_view text) {
  replies_.push_bytes(text);
}

void Dispatcher::on_dump_over() {
  dump_ = nullptr;
  stats_.admin.is_dumping = false;
  observer_.on_resumable();
}

// --- what every backend is told

bool Dispatcher::ask_all(op::AdminVerb verb, uint64_t number) {
  admin_verb_ = verb;
  op::Op op;
  op.code = op::OpCode::kAdmin;
  op.group = static_cast<uint8_t>(verb);
  op.value = {reinterpret_cast<const char*>(&number), sizeof number};
  return start_fan_out(op);
}

void Dispatcher::on_admin_done(op::ResultCode failure) {
  if (failure == op::ResultCode::kOk) return answer_line(memcache::kOk);
  // A clock that may not be moved is one that memcached's usual builds do not know, either.
  const bool is_refused = failure == op::ResultCode::kUnsupported || failure == op::ResultCode::kInvalid;
  if (admin_verb_ == op::AdminVerb::kMoveClock && is_refused) return answer_line(memcache::kErrorLine);
  if (failure == op::ResultCode::kOutOfMemory) return answer_line(memcache::kLimitImpossible);
  answer_line(failure_line(failure));
}

// --- the rest

std::string Dispatcher::refresh_certificates() {
  if (!stats_.tls->is_on()) return std::string(memcache::kNoTls);
  const base::Status refreshed = stats_.tls->refresh();
  return refreshed ? std::string(memcache::kOk) : "Error " + refreshed.message() + "\r\n";
}

std::string_view Dispatcher::begin_watch(uint16_t streams) {
  if (!config_->allow_watch) return memcache::kWatchNotAllowed;
  if (!observer_.on_watch(streams)) return memcache::kTooManyWatchers;
  watching_ = true;
  return memcache::kOk;
}

// Both ways: memcached's answers nothing and ends; what others have asked is answered here first.
void Dispatcher::shut_down(const AdminRequest& request) {
  if (!config_->allow_shutdown) return answer_line(memcache::kShutdownNotEnabled);
  if (!request.answer.empty()) return answer_line(request.answer);
  closing_ = true;
  ::kill(::getpid(), SIGTERM);
}

}  // namespace egret::proxy
