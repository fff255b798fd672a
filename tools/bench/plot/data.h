// What the pictures show, read from the JSON of `egret-bench compare` and checked once, here.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace egret::bench_plot {

struct Bar {
  size_t contender = 0;  // of Data::contenders
  double median = 0;     // µs of CPU for each op, above 0, as all figures here
  double least = 0;      // of the rounds
  double greatest = 0;
};
struct Group {
  std::string row;
  std::vector<Bar> bars;
};

struct Point {
  double ops_per_s = 0;
  double p50_us = 0;
  double p99_us = 0;
  double connections = 0;
};
struct Line {
  size_t contender = 0;
  std::vector<Point> points;  // in the order of the connections
};
struct Panel {
  std::string sweep;
  std::vector<Line> lines;
};

struct Contender {
  std::string name;
  std::string version;

  std::string title() const { return name + " " + version; }
};

struct Data {
  std::vector<Contender> contenders;
  std::string conditions;  // "5 rounds of 0.8 s on 2 CPUs"
  std::vector<Group> groups;
  std::vector<Panel> panels;
};

// A figure that is missing, or is nothing that can be drawn, is left out; a text of another form is an error.
base::Expected<Data> read_data(const std::string& json);

}  // namespace egret::bench_plot
