#include "op/rights.h"

#include <algorithm>
#include <array>
#include <span>

namespace egret::op {

namespace {
struct Word {
  std::string_view name;
  Rights rights;
};
constexpr auto kWords = std::to_array<Word>({
    {"read", kMayRead},
    {"write", kMayWrite},
    {"flush", kMayFlush},
    {"dump", kMayDump},
    {"limits", kMayLimits},
    {"all", kAllRights},
    {"none", 0},
});
constexpr size_t kSingleRights = 5;
}  // namespace

std::string to_string(Rights rights) {
  if ((rights & kAllRights) == kAllRights) return "all";
  std::string text;
  for (const Word& word : std::span(kWords).first(kSingleRights)) {
    if ((rights & word.rights) != 0) text.append(text.empty() ? "" : "+").append(word.name);
  }
  return text.empty() ? "none" : text;
}

bool parse_rights(std::string_view text, Rights& rights) {
  rights = 0;
  for (size_t end = 0; end != std::string_view::npos; text.remove_prefix(end == text.npos ? text.size() : end + 1)) {
    end = text.find('+');
    const auto word = std::ranges::find(kWords, text.substr(0, end), &Word::name);
    if (word == kWords.end()) return false;
    rights |= word->rights;
  }
  return true;
}

}  // namespace egret::op
