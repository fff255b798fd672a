#include "backend/admin_pages.h"

#include <algorithm>
#include <string>
#include <utility>

#include <event2/event.h>

#include "base/check.h"
#include "page/page.h"

namespace egret::backend {

using admin::Answer;
using admin::HttpReply;

namespace {

constexpr timeval kPatience{1, 0};  // a partition that has not answered by then stands
constexpr unsigned kUnavailable = 503;

}  // namespace

void AdminPages::EventDeleter::operator()(event* e) const {
  event_free(e);
}

AdminPages::AdminPages(event_base* base, const Config& config, Host& host)
    : config_(config), host_(host), partitions_(config.partitions), server_(base) {
  patience_.reset(event_new(
      base, -1, 0, [](int, short, void* self) { static_cast<AdminPages*>(self)->answer_all(); }, this));
  EGRET_CHECK(patience_ != nullptr);
  server_.serve("/", {.body = page::status_page(),
                      .content_type = page::kContentType,
                      .content_security_policy = page::content_security_policy()});
  server_.serve("/metrics", [this](HttpReply reply) { ask(Topic::kMetrics, std::move(reply)); });
  server_.serve("/healthz", [this](HttpReply reply) { ask(Topic::kHealth, std::move(reply)); });
  // The loop that answers this is the one that grants sessions.
  server_.serve("/readyz", [this](HttpReply reply) {
    reply.send({.body = "ready\nopen sessions: " + std::to_string(host_.figures().open) + "\n"});
  });
}

AdminPages::~AdminPages() = default;

base::Status AdminPages::listen() {
  return server_.listen(config_.admin);
}

void AdminPages::ask(Topic topic, HttpReply reply) {
  questions_.push_back({topic, std::move(reply)});
  if (questions_.size() > 1) return;
  event_add(patience_.get(), &kPatience);
  for (Partition& partition : partitions_) partition.has_said = false;
  for (uint32_t number = 0; number < partitions_.size(); ++number) {
    Partition& partition = partitions_[number];
    if (!std::exchange(partition.is_asked, true)) host_.inquire(number, partition.report);
  }
}

void AdminPages::on_report(uint32_t number) {
  partitions_[number].is_asked = false;
  partitions_[number].has_said = true;
  if (std::ranges::all_of(partitions_, &Partition::has_said)) answer_all();
}

// Everybody has reported, or there was no more time.
void AdminPages::answer_all() {
  event_del(patience_.get());
  for (Question& question : std::exchange(questions_, {})) {
    question.reply.send(question.topic == Topic::kMetrics ? metrics() : health());
  }
}

Answer AdminPages::metrics() const {
  std::vector<const PartitionReport*> reports;
  for (const Partition& partition : partitions_) reports.push_back(partition.has_said ? &partition.report : nullptr);
  return {.body = metrics_text(host_.figures(), reports), .content_type = std::string(admin::MetricPage::kContentType)};
}

Answer AdminPages::health() const {
  Answer answer{.body = "ok\n"};
  if (!std::ranges::all_of(partitions_, &Partition::has_said)) answer = {.status = kUnavailable, .body = ""};
  for (size_t number = 0; number < partitions_.size(); ++number) {
    if (!partitions_[number].has_said) answer.body += "partition " + std::to_string(number) + " does not answer\n";
  }
  return answer;
}

}  // namespace egret::backend
