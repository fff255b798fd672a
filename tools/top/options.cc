#include "top/options.h"

#include <cstdio>
#include <map>
#include <string>

#include <CLI/CLI.hpp>

namespace egret::top {

namespace {

constexpr const char* kDefaults[] = {"127.0.0.1:11280", "127.0.0.1:11281"};

bool add_targets(const std::vector<std::string>& addresses, Options& options) {
  for (const std::string& address : addresses) {
    auto target = parse_target(address);
    if (!target) {
      std::fprintf(stderr, "egret-top: %s\n", target.message().c_str());
      return false;
    }
    options.targets.push_back(std::move(target.value()));
  }
  return true;
}

}  // namespace

bool parse_options(int argc, char** argv, Options& options, int& exit_status) {
  CLI::App app(
      "Shows what egret-proxy and egret-backend do, from /metrics of their admin addresses.\n"
      "Keys: q quit, p pause, left and right sort, r reverse, l lanes, up and down scroll, ? help.\n"
      "Without a terminal it writes a line for each daemon and interval.\n"
      "Exit status: 0; with --once 1 if no daemon answered; 1 for a command line that is wrong.",
      "egret-top");
  std::vector<std::string> addresses;
  app.add_option("ADDRESS", addresses,
                 "HOST:PORT, http://HOST:PORT or unix:PATH, as the daemons' option `admin` says\n"
                 "(default: 127.0.0.1:11280 and 127.0.0.1:11281, whichever answers)")
      ->type_name("");
  app.add_option("-i,--interval", options.interval_s, "time between two looks, such as 500ms or 1s")
      ->default_str("1s")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"ms", 0.001}, {"s", 1}, {"min", 60}}))
      ->check(CLI::Range(0.1, 3600.0))
      ->option_text("TIME (1s)");
  app.add_flag("--once", options.once, "two looks, an interval apart; then the figures, and the end");
  app.add_flag("--plain", options.plain, "lines of text, also on a terminal; with --once the whole picture");
  app.add_flag("--json", options.json, "a JSON object on a line for each interval");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_status = app.exit(error) == 0 ? 0 : 1;
    return false;
  }
  options.are_defaults = addresses.empty();
  if (options.are_defaults) addresses.assign(std::begin(kDefaults), std::end(kDefaults));
  if (add_targets(addresses, options)) return true;
  exit_status = 1;
  return false;
}

}  // namespace egret::top
