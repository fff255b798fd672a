// paradigms_life: one paradigm over real verbs, every answer judged; prints what was answered and what was posted, as JSON.
//
//   paradigms_life [--until wrong|retries|lost|stuck] [--holes N] [--put-pause US] [--progress FILE]
//                  [--scene moved-key|dies-holding] [--marker FILE] OPTIONS
//   paradigms_life --ids
//
// OPTIONS are those of `egret-bench paradigms`, of which the sides, the workload and the tuning are taken; the others, the
// run-time switches of the faults, are life.h's and scenes.h's. --ids prints a line for each id: its marks, as the paper
// has it and as it runs by default. The listening side decides; a connecting one prints its own nodes. `besides`: what
// control connections and probes have posted: with the nodes' it is all that this process has.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "bench_paradigms/fabric/besides.h"
#include "bench_paradigms/notice.h"
#include "bench_paradigms/options.h"
#include "bench_paradigms/report/names.h"
#include "life.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)
using egret::base::Expected;

namespace {

std::atomic<bool> g_stop{false};

struct Arguments {
  Options options;
  Wish wish;
  std::string progress, marker;
  uint32_t put_pause_us = 0;
};

std::string marks_text(uint8_t marks) {
  std::string text;
  for (const MarkName& each : kMarkNames) {
    if ((marks & each.mark) != 0) text += (text.empty() ? "" : ",") + std::string(each.name);
  }
  return text.empty() ? "-" : text;
}

void print_ids() {
  for (const Paradigm& each : paradigms()) {
    std::printf("%s %s %s\n", std::string(each.id).c_str(), marks_text(each.marks_as_paper).c_str(),
                marks_text(each.marks).c_str());
  }
}

template <typename Value>
Value named(const std::map<std::string, Value>& names, const char* text) {
  const auto found = names.find(text);
  if (found != names.end()) return found->second;
  std::fprintf(stderr, "paradigms_life: what is %s?\n", text);
  std::exit(2);
}

// Takes its own out of the command line, and leaves the rest to egret-bench's.
bool read(int argc, char** argv, Arguments& all, int& exit_status) {
  const std::map<std::string, Until> untils = {
      {"wrong", Until::kWrong}, {"retries", Until::kRetries}, {"lost", Until::kLost}, {"stuck", Until::kStuck}};
  const std::map<std::string, Scene> scenes = {{"moved-key", Scene::kMovedKey}, {"dies-holding", Scene::kDiesHolding}};
  const std::map<std::string, std::function<void(const char*)>> own = {
      {"--until", [&](const char* text) { all.wish.until = named(untils, text); }},
      {"--scene", [&](const char* text) { all.wish.scene = named(scenes, text); }},
      {"--holes", [&](const char* text) { all.wish.holes = static_cast<uint32_t>(std::atoi(text)); }},
      {"--put-pause", [&](const char* text) { all.put_pause_us = static_cast<uint32_t>(std::atoi(text)); }},
      {"--progress", [&](const char* text) { all.progress = text; }},
      {"--marker", [&](const char* text) { all.marker = text; }}};
  std::vector<char*> rest = {argv[0]};
  for (int i = 1; i < argc; ++i) {
    const auto found = own.find(argv[i]);
    if (found != own.end() && i + 1 < argc) {
      found->second(argv[++i]);
    } else {
      rest.push_back(argv[i]);
    }
  }
  return parse_options(static_cast<int>(rest.size()), rest.data(), all.options, exit_status);
}

// As a round of egret-bench does it (harness/session_run.h).
Expected<Order> order_of(const Arguments& all, const std::function<void()>& pause) {
  const Setting& setting = all.options.setting;
  Case one = cases_of(setting).front();
  Order order;
  order.paradigm = setting.ids.empty() ? "raw-read" : setting.ids.front();
  const Paradigm* const paradigm = find_paradigm(order.paradigm);
  if (paradigm == nullptr) return egret::base::Status::error("there is no paradigm " + order.paradigm);
  if (!paradigm->has(OpKind::kPut)) one.gets = 1;
  order.plan = plan_of(setting, one);
  if (all.put_pause_us > 0) order.plan.pause = &pause;
  order.keys = setting.keys;
  Wish wish = all.wish;
  wish.workload = workload_of(setting, one, paradigm->has(OpKind::kNext));
  wish.workload.stores_puts = paradigm->stores_puts;
  wish.load = {one.rate, setting.ops};
  order.workload = to_notice(wish);
  return order;
}

Expected<std::string> lead(Session& session, const Arguments& all, Life& life) {
  const std::function<void()> pause = [&] { life.pause(all.put_pause_us); };
  auto order = order_of(all, pause);
  if (!order) return order.status();
  auto result = session.run(order.value(), life);
  if (!result) return result.status();
  const Capabilities& can = session.capabilities();
  std::ostringstream out;
  out << "\"not_available\": \"" << result.value().not_available << "\", \"uc\": " << can.has_uc
      << ", \"ud\": " << can.has_ud << ", \"atomics\": " << can.has_atomics << ", \"inline\": " << can.inline_bytes
      << ", \"mtu\": " << can.mtu << ", \"read_depth\": " << can.read_depth << ", \"device\": \"" << can.device << '"';
  return out.str();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--ids") == 0) {
    print_ids();
    return 0;
  }
  Arguments all;
  int exit_status = 0;
  if (!read(argc, argv, all, exit_status)) return exit_status;
  std::signal(SIGTERM, [](int) { g_stop.store(true); });
  Life life(all.progress, all.marker);
  const Options& options = all.options;
  const Sides sides{options.listen, options.connect, options.loop, options.token, options.hosts};
  const auto say = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  auto report = run_sides(
      sides, life, [&](Session& session) { return lead(session, all, life); }, say, g_stop);
  const std::string ended = report ? report.value() : "\"error\": \"" + report.message() + '"';
  std::printf("{%s,\n \"besides\": %s,\n \"nodes\": [%s]}\n", ended.c_str(), to_json(besides()).c_str(),
              life.nodes().c_str());
  if (report) return 0;
  std::fprintf(stderr, "paradigms_life: %s\n", report.message().c_str());
  return 1;
}
