// The way of a picture:
//
//   JSON -> read_data: checked -> draw_cpu, draw_throughput_latency: scales, pieces -> Svg -> file
#include "bench_plot/command.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <CLI/CLI.hpp>

#include "bench_plot/charts.h"
#include "bench_plot/data.h"

namespace egret::bench_plot {
namespace {

struct Options {
  std::string file;
  std::string folder = ".";
  bool cpu = false;
  bool throughput_latency = false;
};

bool parse(int argc, char** argv, Options& options, int& exit_status) {
  CLI::App app(
      "Draws what egret-bench compare measured: cpu.svg and, if it swept, throughput-latency.svg. The pictures need "
      "nothing\n"
      "but themselves; any SVG viewer shows them.",
      "egret-bench plot");
  app.add_option("FILE", options.file, "the JSON of egret-bench compare --json")->required();
  app.add_option("-o,--output", options.folder, "folder that the pictures are written to")->capture_default_str();
  app.add_flag("--cpu", options.cpu, "only cpu.svg: CPU for each op, by row");
  app.add_flag("--throughput-latency", options.throughput_latency,
               "only throughput-latency.svg: needs compare --sweep");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_status = app.exit(error) == 0 ? 0 : 1;
    return false;
  }
  return true;
}

int fail(const std::string& why) {
  std::fprintf(stderr, "egret-bench plot: %s\n", why.c_str());
  return 1;
}

int write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  return file ? 0 : fail("cannot write " + path.string());
}

}  // namespace

int run(int argc, char** argv) {
  Options options;
  int exit_status = 0;
  if (!parse(argc, argv, options, exit_status)) return exit_status;
  std::ifstream file(options.file);
  if (!file) return fail("cannot read " + options.file);
  std::ostringstream text;
  text << file.rdbuf();
  const auto data = read_data(text.str());
  if (!data) return fail(options.file + ": " + data.message());
  const bool both = options.cpu == options.throughput_latency;
  const bool has_rows = !data.value().groups.empty();
  const bool has_sweeps = !data.value().panels.empty();
  if ((options.cpu && !has_rows) || (options.throughput_latency && !has_sweeps) || (!has_rows && !has_sweeps)) {
    return fail(options.file + " has no figures for that");
  }
  const std::filesystem::path folder(options.folder);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if ((both || options.cpu) && has_rows) exit_status |= write(folder / "cpu.svg", draw_cpu(data.value()));
  if ((both || options.throughput_latency) && has_sweeps) {
    exit_status |= write(folder / "throughput-latency.svg", draw_throughput_latency(data.value()));
  }
  return exit_status;
}

}  // namespace egret::bench_plot
