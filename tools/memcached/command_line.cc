#include "memcached/command_line.h"

#include <cmath>
#include <cstdlib>

#include <getopt.h>

#include "base/text.h"
#include "memcached/flags.h"

namespace egret::memcached {

namespace {

using MaybeRefusal = std::optional<Refusal>;

constexpr int kFirstLong = 256;  // getopt_long returns kFirstLong + row number for a row without a letter

struct Getopt {
  std::string letters;
  std::vector<option> names;
};

Getopt getopt_of(std::span<const Flag> table) {
  Getopt result{.letters = "o:", .names = {{"extended", required_argument, nullptr, 'o'}}};
  for (size_t number = 0; number < table.size(); ++number) {
    const Flag& flag = table[number];
    if (flag.is_extended) continue;
    const bool has_value = flag.value != Value::kNone;
    if (flag.letter != '\0') result.letters.append(1, flag.letter).append(has_value ? ":" : "");
    if (flag.name.empty()) continue;
    const int code = flag.letter != '\0' ? flag.letter : kFirstLong + static_cast<int>(number);
    result.names.push_back({flag.name.data(), has_value ? required_argument : no_argument, nullptr, code});
  }
  result.names.push_back({nullptr, 0, nullptr, 0});
  return result;
}

std::string limits(const Flag& flag) {
  const std::string most = flag.max > 1e12 ? "" : " to " + std::to_string(static_cast<int64_t>(flag.max));
  if (flag.value == Value::kReal) return "a number above " + std::to_string(static_cast<int64_t>(flag.min));
  return "a number from " + std::to_string(static_cast<int64_t>(flag.min)) + most;
}

MaybeRefusal check_value(const Flag& flag, const std::string& value) {
  const std::string wrong = shown(flag) + ": expected " + limits(flag) + ", got " + base::quoted(value);
  if (flag.value == Value::kText && value.empty()) return Refusal{shown(flag) + ": expected a value"};
  if (flag.value != Value::kWhole && flag.value != Value::kReal) return {};
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != '\0' || !std::isfinite(number)) return Refusal{wrong};
  if (flag.value == Value::kReal) return number > flag.min && number <= flag.max ? MaybeRefusal{} : Refusal{wrong};
  if (value.find_first_not_of("+-0123456789") != std::string::npos) return Refusal{wrong};
  return number >= flag.min && number <= flag.max ? MaybeRefusal{} : Refusal{wrong};
}

std::string setting_of(const Flag& flag, const std::string& value) {
  if (flag.setting == kKilobytes) return std::to_string(std::stoll(value) * 1024);
  if (flag.setting.find('|') != std::string_view::npos) {
    return base::split(flag.setting, '|').at(std::stoul(value));
  }
  std::string setting(flag.setting);
  if (const size_t hole = setting.find("{}"); hole != std::string::npos) setting.replace(hole, 2, value);
  return setting;
}

MaybeRefusal take(Request& request, const Flag& flag, const std::string& value) {
  if (MaybeRefusal wrong = check_value(flag, value); wrong) return wrong;
  switch (flag.fate) {
    case Fate::kOption: {
      DaemonOptions& options = flag.daemon == Daemon::kProxy ? request.proxy : request.backend;
      options[std::string(flag.option)] = setting_of(flag, value);
      return {};
    }
    case Fate::kApplied:
      return flag.apply(request, value);
    case Fate::kIgnored:
      if (!flag.option.empty()) request.told[std::string(flag.option)] = setting_of(flag, value);
      request.ignored.push_back(flag.is_extended ? "-o " + std::string(flag.name) : std::string("-") + flag.letter);
      return {};
    case Fate::kRefused:
      return Refusal{shown(flag) + ": " + std::string(flag.becomes)};
  }
  return {};
}

// "idle_timeout=10,modern"
MaybeRefusal take_extended(Request& request, const std::string& list) {
  for (const std::string& part : base::split(list, ',')) {
    if (part.empty()) continue;
    const size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    const Flag* known = nullptr;
    for (const Flag& flag : flag_table()) {
      if (flag.is_extended && flag.name == name) known = &flag;
    }
    if (known == nullptr) return Refusal{"Illegal suboption " + base::quoted(part)};
    const std::string value = equals == std::string::npos ? "" : part.substr(equals + 1);
    if (MaybeRefusal wrong = take(request, *known, value); wrong) return wrong;
  }
  return {};
}

const Flag* find_flag(int code) {
  const std::span<const Flag> table = flag_table();
  if (code >= kFirstLong) return &table[static_cast<size_t>(code - kFirstLong)];
  for (const Flag& flag : table) {
    if (!flag.is_extended && flag.letter == code && code != '\0') return &flag;
  }
  return nullptr;
}

}  // namespace

std::variant<Request, Refusal> read_command_line(int argc, char** argv) {
  const Getopt known = getopt_of(flag_table());
  Request request;
  optind = 0;  // restart getopt: tests parse many command lines
  for (int code = 0; (code = ::getopt_long(argc, argv, known.letters.c_str(), known.names.data(), nullptr)) != -1;) {
    const std::string value = optarg == nullptr ? "" : optarg;
    MaybeRefusal wrong;
    if (code == 'o') {
      wrong = take_extended(request, value);
    } else if (const Flag* flag = find_flag(code); flag != nullptr) {
      wrong = take(request, *flag, value);
    } else {
      wrong = Refusal{std::string("Illegal argument \"") + static_cast<char>(code) + "\""};  // getopt has printed it
    }
    if (wrong) return *wrong;
    if (request.action != Action::kServe) break;  // as memcached: the first of -h, -V and -i wins
  }
  return request;
}

}  // namespace egret::memcached
