// A range of values laid onto a range of pixels, and the round values where ticks belong.
#pragma once

#include <vector>

namespace egret::bench_plot {

class Scale {
 public:
  // From 0 to the tick at or above `greatest`, which is above 0.
  static Scale linear(double greatest, double from_px, double to_px);
  // From the tick at or below `least` to the one at or above `greatest`; ticks are 1, 2 and 5 times powers of ten.
  static Scale logarithmic(double least, double greatest, double from_px, double to_px);

  double at(double value) const;
  double low() const { return ticks_.front(); }
  double high() const { return ticks_.back(); }
  const std::vector<double>& ticks() const { return ticks_; }  // rising, two at least

 private:
  Scale(bool is_log, std::vector<double> ticks, double from_px, double to_px)
      : is_log_(is_log), ticks_(std::move(ticks)), from_px_(from_px), to_px_(to_px) {}

  bool is_log_;
  std::vector<double> ticks_;
  double from_px_;
  double to_px_;
};

}  // namespace egret::bench_plot
