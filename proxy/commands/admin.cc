#include "proxy/commands/admin.h"

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include <unistd.h>

#include "memcache/reply.h"
#include "proxy/commands/barriers.h"
#include "proxy/commands/cluster.h"
#include "proxy/commands/control.h"

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

AdminCommands::~AdminCommands() {
  if (dump_ == nullptr) return;
  client_.worker.proxy.admin.is_dumping = false;
  dump_->abandon();
}

Outcome AdminCommands::act(const AdminRequest& request, Barriers& barriers) {
  client_.command.noreply = request.noreply;
  if (is_pipelined(request)) {
    client_.replies.push_text(pipelined_line(request));
    return Outcome::kDone;
  }
  if (!client_.replies.empty()) return Outcome::kWaitForAnswer;
  AdminState& state = client_.worker.proxy.admin;
  switch (request.action) {
    case AdminAction::kDump:
      return begin_dump(request);
    case AdminAction::kMemoryLimit:
      // Each backend gets an equal part, since `limit_maxbytes` is the sum of the backends' limits.
      return barriers.tell_all(op::AdminVerb::kMemoryLimit,
                               request.number / std::max<size_t>(1, client_.worker.pool.serving().size()));
    case AdminAction::kMoveClock:
      return barriers.tell_all(op::AdminVerb::kMoveClock, request.number);
    case AdminAction::kWatch:
      return begin_watch(request.streams);
    case AdminAction::kShutdown:
      return shut_down(request);
    case AdminAction::kRefreshCertificates:
      return line(refresh_certificates());
    case AdminAction::kShowCluster:
      return line(cluster());
    case AdminAction::kDetailOn:
    case AdminAction::kDetailOff:
      state.prefixes.turn(request.action == AdminAction::kDetailOn);
      return line(request.answer);
    case AdminAction::kDetailDump:
      return begin_report(state.prefixes.report());
    case AdminAction::kEnableCrawler:
      return line(state.crawler_is_enabled.exchange(true) ? memcache::kCrawlerRuns : memcache::kOk);
    case AdminAction::kDisableCrawler:
      return line(state.crawler_is_enabled.exchange(false) ? memcache::kOk : memcache::kCrawlerDoesNotRun);
    case AdminAction::kCrawl:
      return line(state.crawler_is_enabled ? request.answer : memcache::kCrawlerDisabled);
    case AdminAction::kAnswer:
      return line(request.answer);
  }
  return Outcome::kDone;
}

// As memcached: refuses a watch or a crawl that is pipelined behind other commands, except behind retrievals.
bool AdminCommands::is_pipelined(const AdminRequest& request) const {
  const bool minds = request.action == AdminAction::kWatch ||
                     (request.action == AdminAction::kDump && request.form != DumpForm::kItems);
  return minds && !client_.was_held && (!client_.replies.ends_in_retrieval() || client_.output.size() > 0);
}

Outcome AdminCommands::line(std::string_view text) {
  answer_line(client_, text);
  return Outcome::kDone;
}

Outcome AdminCommands::begin_dump(const AdminRequest& request) {
  AdminState& state = client_.worker.proxy.admin;
  const bool is_crawl = request.form != DumpForm::kItems;
  if (is_crawl && !state.crawler_is_enabled) return line(memcache::kCrawlerDisabled);
  if (!client_.config->allow_dump) return line(not_allowed_line(request.form));
  if (state.is_dumping.exchange(true)) return line(memcache::kCrawlerBusy);
  dump_ = new Dump(client_.worker.pool, request, client_.output, *this);
  dump_->go_on();
  return Outcome::kRunning;
}

void AdminCommands::go_on() {
  if (dump_ != nullptr) return dump_->go_on();
  write_pages();
}

Outcome AdminCommands::begin_report(std::unique_ptr<PagedReport> report) {
  report_ = std::move(report);
  write_pages();
  return is_running() ? Outcome::kRunning : Outcome::kDone;
}

void AdminCommands::write_pages() {
  std::string page;
  while (report_ != nullptr && client_.output.may_run_ahead()) {
    page.clear();
    if (!report_->next(page)) report_.reset();
    answer_report(client_, page);
  }
}

void AdminCommands::on_dump_text(std::string_view text) {
  client_.replies.push_bytes(text);
}

void AdminCommands::on_dump_over() {
  dump_ = nullptr;
  client_.worker.proxy.admin.is_dumping = false;
  client_.observer.on_resumable();
}

Outcome AdminCommands::begin_watch(uint16_t streams) {
  if (!client_.config->allow_watch) return line(memcache::kWatchNotAllowed);
  if (!client_.observer.on_watch(streams)) return line(memcache::kTooManyWatchers);
  answer_line(client_, memcache::kOk);
  return Outcome::kWatching;
}

std::string AdminCommands::refresh_certificates() {
  TlsServer& tls = *client_.worker.proxy.tls;
  if (!tls.is_on()) return std::string(memcache::kNoTls);
  const base::Status refreshed = tls.refresh();
  return refreshed ? std::string(memcache::kOk) : "Error " + refreshed.message() + "\r\n";
}

// This proxy alone, by the address that the client has connected to, unless the option names others.
std::string AdminCommands::cluster() const {
  const Config& config = *client_.config;
  if (!config.cluster.empty()) return cluster_text(config.cluster_version, config.cluster);
  const std::string own = client_.observer.listen_address();
  const size_t at = own.find(':') + 1;
  if (own.starts_with("unix:") || at == 0) return "SERVER_ERROR no proxies are named: see the option cluster\r\n";
  const std::vector<std::string> only{own.substr(at)};
  return cluster_text(config.cluster_version, only);
}

// As memcached, ends the process without an answer. Unlike memcached, it answers other clients' requests first.
Outcome AdminCommands::shut_down(const AdminRequest& request) {
  if (!client_.config->allow_shutdown) return line(memcache::kShutdownNotEnabled);
  if (!request.answer.empty()) return line(request.answer);
  ::kill(::getpid(), SIGTERM);
  return Outcome::kClosing;
}

}  // namespace egret::proxy
