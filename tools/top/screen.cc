#include "top/screen.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "top/text.h"

namespace egret::top {

namespace {

constexpr std::string_view kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::string_view kPlotLevels = "_.:-=+*#";
constexpr size_t kPlotColumns = 40;
constexpr size_t kMaxNameColumns = 28;
constexpr size_t kMaxAddressColumns = 60;

// A line with figures of the daemon: its title, and rows of its table. A row titled "of" belongs to the figure before
// it.
struct FigureLine {
  std::string_view about;
  std::vector<std::string_view> names;
};

const std::vector<FigureLine>& lines_of(Kind kind) {
  static const std::vector<FigureLine> proxy = {
      {"requests", {"requests", "get", "set", "delete", "arith", "touch", "other"}},
      {"latency", {"p50", "p99", "p999", "errors", "hit_ratio", "hit_ratio_since_start", "moved"}},
      {"clients", {"connections", "max_connections", "accepted", "rejected", "idle_kicks", "received", "sent"}},
      {"messages", {"messages", "ops_per_message", "refetches_per_message", "torn", "rings", "wants", "timeouts"}},
  };
  static const std::vector<FigureLine> backend = {
      {"ops", {"ops", "gets", "sets", "misses", "hit_ratio", "hit_ratio_since_start"}},
      {"memory", {"bytes", "limit", "items", "evictions", "evicted_unfetched", "no_memory"}},
      {"sessions",
       {"sessions", "max_sessions", "by_shm", "by_rdma", "by_tcp", "by_local", "session_memory", "lanes", "awake"}},
      {"messages", {"messages", "ops_per_message"}},
  };
  static const std::vector<FigureLine> none;
  return kind == Kind::kProxy ? proxy : kind == Kind::kBackend ? backend : none;
}

// --- lines

size_t columns_of(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string_view first_columns(std::string_view text, size_t columns) {
  size_t at = 0;
  while (at < text.size() && (columns > 0 || (text[at] & 0xC0) == 0x80)) {
    if ((text[at] & 0xC0) != 0x80) --columns;
    ++at;
  }
  return text.substr(0, at);
}

Line cut(const Line& line, size_t width) {
  Line kept;
  for (const Span& span : line) {
    const size_t columns = columns_of(span.text);
    kept.push_back({std::string(first_columns(span.text, width)), span.style});
    if (columns >= width) break;
    width -= columns;
  }
  return kept;
}

std::string printable(const std::string& text, size_t limit) {
  std::string name = base::quoted_if_odd(text);
  if (std::ranges::any_of(name, [](char c) { return c < ' ' || c > '~'; })) name = base::quoted(text);
  if (name.size() > limit) name = name.substr(0, limit - 2) + "..";
  return name;
}

// --- the small plot

std::string plot(const std::deque<std::optional<double>>& history, bool has_blocks) {
  const size_t count = std::min(history.size(), kPlotColumns);
  const auto begin = history.end() - static_cast<std::ptrdiff_t>(count);
  double most = 0;
  for (auto at = begin; at != history.end(); ++at) most = std::max(most, at->value_or(0));
  std::string text;
  for (auto at = begin; at != history.end(); ++at) {
    const auto level = *at && most > 0 ? std::min<size_t>(7, static_cast<size_t>(**at / most * 7.999)) : 0;
    if (!*at) {
      text += ' ';
    } else if (has_blocks) {
      text += kBlocks[level];
    } else {
      text += kPlotLevels[level];
    }
  }
  return text;
}

// --- tables of parts

struct Cell {
  std::string text;
  Style style = Style::kPlain;
};

std::string mode_text(std::optional<Value> lanes, std::optional<Value> replies) {
  if (!lanes || !replies || lanes->number == 0) return "-";
  if (replies->number == 0) return "fetch";
  if (replies->number == lanes->number) return "reply";
  return fmt::format("{:.0f}/{:.0f} reply", replies->number, lanes->number);
}

// How a backend is: its figures of this table.
Cell up_cell(std::span<const FigureRow> table, const Values& values, std::optional<Value> up) {
  const std::optional<Value> sessions = figure(table, values, "sessions");
  const auto is_set = [&](std::string_view name) { return figure(table, values, name).value_or(Value{}).number > 0; };
  if (!up) return {"-"};
  if (is_set("standing_in")) return {"GUTTER", Style::kWarning};
  if (is_set("ejected")) return {"EJECTED", Style::kBad};
  if (is_set("held_back")) return {"HELD BACK", Style::kBad};
  if (up->number == 1) return {"up", Style::kGood};
  if (sessions && sessions->number > 0) return {"PARTLY", Style::kWarning};
  return {"DOWN", Style::kBad};
}

// What a backend's sessions go by now. Of a backend with two transports TCP is the one in need.
Cell transport_cell(std::span<const FigureRow> table, const Values& values, std::string_view address) {
  std::string used;
  for (const char* const name : {"shm", "rdma", "tcp"}) {
    const bool is_used = figure(table, values, std::string("by_") + name).value_or(Value{}).number > 0;
    if (is_used) used.append(used.empty() ? "" : "+").append(name);
  }
  if (used.empty()) return {"-"};
  const bool in_need = used != "rdma" && address.starts_with("rdma+tcp:");
  return {used, in_need ? Style::kWarning : Style::kPlain};
}

Cell cell_of(std::span<const FigureRow> table, const PartFigures& part, size_t row, Kind kind) {
  const Values& values = part.values;
  const std::string_view name = table[row].name;
  if (name == "by_tcp" && kind == Kind::kProxy) return transport_cell(table, values, part.address);
  if (name == "up") {
    return up_cell(table, values, values[row]);
  }
  if (name == "reply_lanes") return {mode_text(figure(table, values, "lanes"), values[row])};
  Cell cell{value_text(table[row], values[row], false)};
  if (name == "timeouts" && values[row].value_or(Value{}).number > 0) cell.style = Style::kBad;
  return cell;
}

std::string title_of(const FigureRow& row) {
  if (row.name == "up") return "STATE";
  if (row.name == "reply_lanes") return "MODE";
  if (row.name == "limit") return "LIMIT";
  if (row.name == "by_tcp") return "BY";
  std::string title(row.title);
  std::ranges::transform(title, title.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
  return row.how == How::kRate ? title + "/S" : title;
}

// The rows to show. A proxy's rows of what its columns mode and state show are left out.
std::vector<size_t> shown_rows(std::span<const FigureRow> table, Kind kind) {
  std::vector<size_t> rows;
  for (size_t row = 0; row < table.size(); ++row) {
    const std::string_view name = table[row].name;
    const bool is_shown_elsewhere = name == "lanes" || name == "ejected" || name == "standing_in" ||
                                    name == "held_back" || name == "by_shm" || name == "by_rdma";
    if (kind == Kind::kBackend || !is_shown_elsewhere) rows.push_back(row);
  }
  return rows;
}

// The parts sorted by the chosen column; unknown values come last in both directions.
std::vector<const PartFigures*> sorted(const std::vector<PartFigures>& parts, const std::vector<size_t>& rows,
                                       const Choices& choices) {
  std::vector<const PartFigures*> order;
  order.reserve(parts.size());
  for (const PartFigures& part : parts) order.push_back(&part);
  if (choices.sort_column == 0 || choices.sort_column > rows.size()) {
    if (choices.is_descending) std::ranges::reverse(order);
    return order;
  }
  const size_t row = rows[choices.sort_column - 1];
  std::ranges::stable_sort(order, [&](const PartFigures* left, const PartFigures* right) {
    const auto &a = left->values[row], &b = right->values[row];
    if (!a || !b) return a.has_value() && !b.has_value();
    return choices.is_descending ? a->number > b->number : a->number < b->number;
  });
  return order;
}

using Grid = std::vector<std::vector<Cell>>;

void add_grid(const Grid& grid, std::vector<Line>& lines) {
  std::vector<size_t> widths;
  for (const auto& row : grid) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].text.size());
    }
  }
  for (const auto& row : grid) {
    Line line;
    for (size_t column = 0; column < row.size(); ++column) {
      const auto& [text, style] = row[column];
      const char* layout = column == 0 ? "  {:<{}}" : "  {:>{}}";
      line.push_back({fmt::format(fmt::runtime(layout), text, widths[column]), style});
    }
    lines.push_back(std::move(line));
  }
}

void add_parts(const Figures& figures, const Choices& choices, std::vector<Line>& lines) {
  const bool is_proxy = figures.kind == Kind::kProxy;
  const bool lanes = is_proxy && choices.shows_lanes;
  const auto table = lanes ? lane_table() : part_table_of(figures.kind);
  const auto& parts = lanes ? figures.lanes : figures.parts;
  if (parts.empty()) {
    lines.push_back({{is_proxy ? "  no backend is known" : "  no partition has told of itself", Style::kSoft}});
    return;
  }
  const std::vector<size_t> rows = shown_rows(table, figures.kind);
  const auto heading = [&](std::string text, size_t column) {
    if (column == choices.sort_column) text += choices.is_descending ? '-' : '+';
    return Cell{text, Style::kHeading};
  };
  Grid grid;
  auto& head = grid.emplace_back();
  head.push_back(heading(lanes ? "LANE" : is_proxy ? "BACKEND" : "PARTITION", 0));
  for (size_t column = 0; column < rows.size(); ++column)
    head.push_back(heading(title_of(table[rows[column]]), column + 1));
  const bool has_addresses = std::ranges::any_of(parts, [](const PartFigures& part) { return !part.address.empty(); });
  if (has_addresses) head.push_back({"ADDRESS", Style::kHeading});
  for (const PartFigures* part : sorted(parts, rows, choices)) {
    auto& row = grid.emplace_back();
    const std::string name = printable(part->name, kMaxNameColumns);
    row.push_back({lanes ? name + " " + printable(part->lane, 8) : name});
    for (const size_t figure_row : rows) row.push_back(cell_of(table, *part, figure_row, figures.kind));
    if (has_addresses) row.push_back({printable(part->address, kMaxAddressColumns), Style::kSoft});
  }
  add_grid(grid, lines);
}

// --- a daemon

std::string_view name_of(Kind kind) {
  return kind == Kind::kProxy ? "egret-proxy" : kind == Kind::kBackend ? "egret-backend" : "";
}

Line title_line(const Daemon& daemon, const Frame& frame) {
  const std::string address = base::one_line(daemon.address());
  if (!daemon.was_asked()) return {{address, Style::kBold}, {"  asking", Style::kSoft}};
  if (!daemon.is_up()) {
    return {
        {address, Style::kBold},
        {"  DOWN", Style::kBad},
        {fmt::format(" for {}: {}", age_text(frame.now_s - daemon.down_since_s()), base::one_line(daemon.why_down())),
         Style::kBad}};
  }
  const Figures& figures = daemon.figures();
  const auto table = table_of(figures.kind);
  Line line = {{fmt::format("{} {}", name_of(figures.kind), address), Style::kBold}, {"  up", Style::kGood}};
  std::string more;
  if (figures.started) more += " " + age_text(frame.unix_time_s - *figures.started);
  if (!figures.version.empty()) more += ", version " + printable(figures.version, 24);
  for (const auto& [name, text] :
       {std::pair("cpu", "CPU"), std::pair("resident", "memory"), std::pair("descriptors", "files")}) {
    for (size_t row = 0; row < table.size(); ++row) {
      if (table[row].name == name)
        more += fmt::format(", {} {}", text, value_text(table[row], figures.values[row], false));
    }
  }
  line.push_back({more, Style::kSoft});
  const auto restarted = daemon.restarted_s();
  if (restarted && frame.now_s - *restarted < 60) {
    line.push_back({fmt::format("  RESTARTED {} ago", age_text(frame.now_s - *restarted)), Style::kWarning});
  }
  return line;
}

Line figure_line(const FigureLine& row, const Figures& figures) {
  const auto table = table_of(figures.kind);
  Line line = {{fmt::format("  {:<9}", row.about), Style::kSoft}};
  for (const std::string_view name : row.names) {
    const auto found = std::ranges::find(table, name, &FigureRow::name);
    if (found == table.end()) continue;
    const auto& value = figures.values[static_cast<size_t>(found - table.begin())];
    const std::string text = value_text(*found, value, true);
    const bool leads = name == row.about || found->title == row.about;
    const bool is_bad =
        (name == "errors" || name == "timeouts" || name == "rejected" || name == "torn") && value && value->number > 0;
    line.push_back({found->title == "of" ? " of " : leads ? " " : fmt::format("  {} ", found->title), Style::kSoft});
    line.push_back({text, is_bad ? Style::kBad : Style::kPlain});
  }
  return line;
}

void add_daemon(const Daemon& daemon, const Frame& frame, const Choices& choices, std::vector<Line>& lines) {
  lines.push_back(title_line(daemon, frame));
  if (!daemon.is_up()) return;
  const Figures& figures = daemon.figures();
  bool is_first = true;
  for (const FigureLine& row : lines_of(figures.kind)) {
    lines.push_back(figure_line(row, figures));
    if (is_first) lines.back().push_back({"  " + plot(daemon.history(), frame.has_blocks), Style::kGood});
    is_first = false;
  }
  add_parts(figures, choices, lines);
}

constexpr std::string_view kHelp[] = {
    "egret-top: what egret-proxy and egret-backend say at /metrics of their admin addresses",
    "",
    "  q            quit",
    "  p, space     pause, and go on",
    "  left, right  sort the tables by another column, marked + or -; r: the other way round",
    "  up, down     scroll, also with page up and page down",
    "  l            a row for each lane instead of each backend, and back",
    "  h, ?         this page, and back",
    "",
    "Rates and the hit ratio are those of the last interval; beside it is the hit ratio since the daemon's start.",
    "A dash: nothing to tell, such as the hit ratio of an interval without gets.",
    "ops/msg: ops that one message carried. refetch/msg: looks at a response that came too early.",
    "rings: times that a lane was asleep and woken. torn: looks that saw half a response.",
};

}  // namespace

size_t width_of(const Line& line) {
  return std::accumulate(line.begin(), line.end(), size_t{0},
                         [](size_t sum, const Span& s) { return sum + columns_of(s.text); });
}

std::string text_of(const Line& line) {
  std::string text;
  for (const Span& span : line) text += span.text;
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

void press(Key key, Choices& choices, size_t body_lines, size_t height) {
  const size_t last = body_lines > height ? body_lines - height : 0;
  choices.scroll = std::min(choices.scroll, last);
  const size_t widest =
      std::max({part_table_of(Kind::kProxy).size(), part_table_of(Kind::kBackend).size(), lane_table().size()});
  switch (key) {
    case Key::kQuit:
      choices.quits = true;
      break;
    case Key::kPause:
      choices.is_paused = !choices.is_paused;
      break;
    case Key::kLeft:
      choices.sort_column -= choices.sort_column > 0 ? 1 : 0;
      break;
    case Key::kRight:
      choices.sort_column = std::min(choices.sort_column + 1, widest);
      break;
    case Key::kUp:
      choices.scroll -= choices.scroll > 0 ? 1 : 0;
      break;
    case Key::kDown:
      choices.scroll = std::min(choices.scroll + 1, last);
      break;
    case Key::kPageUp:
      choices.scroll -= std::min(choices.scroll, height);
      break;
    case Key::kPageDown:
      choices.scroll = std::min(choices.scroll + height, last);
      break;
    case Key::kReverse:
      choices.is_descending = !choices.is_descending;
      break;
    case Key::kLanes:
      choices.shows_lanes = !choices.shows_lanes;
      break;
    case Key::kHelp:
      choices.shows_help = !choices.shows_help;
      break;
    case Key::kOther:
      break;
  }
}

Line head_line(const Frame& frame, const Choices& choices, size_t width) {
  Line line = {{"egret-top", Style::kBold}, {"  " + frame.clock + ", every " + frame.interval, Style::kPlain}};
  if (choices.is_paused) line.push_back({"  PAUSED", Style::kWarning});
  const std::string keys = "q quit  p pause  <> sort  l lanes  ? help";
  const size_t used = width_of(line);
  if (used + keys.size() + 2 <= width)
    line.push_back({std::string(width - used - keys.size(), ' ') + keys, Style::kSoft});
  return cut(line, width);
}

std::vector<Line> body_lines(std::span<const Daemon* const> daemons, const Frame& frame, const Choices& choices,
                             size_t width) {
  std::vector<Line> lines;
  if (choices.shows_help) {
    for (const std::string_view text : kHelp) lines.push_back({{std::string(text)}});
  } else {
    for (const Daemon* daemon : daemons) {
      lines.push_back({});
      add_daemon(*daemon, frame, choices, lines);
    }
  }
  for (Line& line : lines) line = cut(line, width);
  return lines;
}

std::string plain_line(const Daemon& daemon, const Frame& frame) {
  const std::string address = base::one_line(daemon.address());
  if (!daemon.is_up()) {
    return fmt::format("{} {} {}", frame.clock, address,
                       daemon.was_asked() ? "DOWN " + base::one_line(daemon.why_down()) : "asking");
  }
  const Figures& figures = daemon.figures();
  std::string line = fmt::format("{} {} {} up", frame.clock, name_of(figures.kind), address);
  const auto table = table_of(figures.kind);
  for (size_t row = 0; row < table.size(); ++row) {
    line += fmt::format(" {}={}", table[row].name, value_text(table[row], figures.values[row], true));
  }
  if (figures.kind == Kind::kProxy) {
    const auto is_up = [](const PartFigures& part) {
      return figure(part_table_of(Kind::kProxy), part.values, "up").value_or(Value{}).number == 1;
    };
    line += fmt::format(" backends_up={}/{}", std::ranges::count_if(figures.parts, is_up), figures.parts.size());
  }
  return line;
}

}  // namespace egret::top
