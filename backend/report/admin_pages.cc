#include "backend/report/admin_pages.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "page/page.h"

namespace egret::backend {

using admin::Answer;
using admin::HttpReply;

namespace {

constexpr std::chrono::seconds kPatience{1};  // a partition that has not answered by then hangs
constexpr unsigned kUnavailable = 503;

}  // namespace

AdminPages::AdminPages(events::EventLoop& loop, const Config& config, Host& host)
    : config_(config),
      host_(host),
      partitions_(config.partitions),
      server_(loop),
      patience_(events::Event::timer<&AdminPages::answer_all>(loop, *this)) {
  server_.serve("/", {.body = page::status_page(),
                      .content_type = page::kContentType,
                      .content_security_policy = page::content_security_policy()});
  server_.serve("/metrics", [this](HttpReply reply) { ask(Topic::kMetrics, std::move(reply)); });
  server_.serve("/healthz", [this](HttpReply reply) { ask(Topic::kHealth, std::move(reply)); });
  // This loop also grants sessions, so its answer means that the backend serves.
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
  patience_.add(kPatience);
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

// All partitions have reported, or the time is over.
void AdminPages::answer_all() {
  patience_.del();
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
