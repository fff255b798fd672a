// Figures for people: three digits and a unit, "-" for an unknown value, 0 for zero. ASCII only.
// Cold path; any thread.
#pragma once

#include <optional>
#include <string>

#include "top/figures.h"

namespace egret::top {

std::string count_text(double value);    // 812345 -> "812k"
std::string whole_text(double value);    // 812345 -> "812,345"
std::string bytes_text(double value);    // 1048576 -> "1.00M", as in df -h
std::string share_text(double value);    // 0.5 -> "50.0%"; "0%" and "100%" only if exact
std::string seconds_text(double value);  // 0.000123 -> "123us"
std::string age_text(double seconds);    // 3725 -> "1h 2min"

// `rate`: append "/s" to a rate.
std::string value_text(const FigureRow& row, const std::optional<Value>& value, bool rate);

}  // namespace egret::top
