// Options: every type, every source, and every error as the one line it promises.
#include <cstdio>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/options/options.h"

using namespace egret::base;

namespace {

constexpr OptionRow kTable[] = {
    {.name = "workers", .type = OptionType::kInteger, .default_value = "0", .help = "Threads.", .max = 64},
    {.name = "offset", .type = OptionType::kInteger, .default_value = "-1", .help = "Any.", .min = -5},
    {.name = "memory", .type = OptionType::kSize, .default_value = "64MiB", .help = "Bytes.", .min = 1 << 20},
    {.name = "slot", .type = OptionType::kSize, .default_value = "4KiB", .help = "A slot.", .min = 512, .max = 1 << 20},
    {.name = "timeout", .type = OptionType::kDuration, .default_value = "1s", .help = "Wait.", .max = 60'000'000'000},
    {.name = "verbose", .type = OptionType::kFlag, .default_value = "false", .help = "Talk."},
    {.name = "pin", .type = OptionType::kChoice, .default_value = "auto", .help = "Pin.", .choices = "auto|on|off"},
    {.name = "listen", .type = OptionType::kList, .default_value = "tcp:1,tcp:2", .help = "Where.", .min = 1, .max = 3},
    {.name = "uids", .type = OptionType::kList, .default_value = "", .help = "Who."},
    {.name = "secret", .type = OptionType::kText, .default_value = "", .help = "Hush.", .max = 16},
};

Expected<Options> parse(const std::string& yaml, std::vector<std::string> arguments = {}) {
  return Options::parse(kTable, yaml, "f.yaml", arguments);
}

std::string error_of(const std::string& yaml, std::vector<std::string> arguments = {}) {
  const auto options = parse(yaml, std::move(arguments));
  if (options) return "no error";
  CHECK(options.message().find('\n') == std::string::npos);
  return options.message();
}

std::string set_error(const std::string& argument) {
  return error_of("", {argument});
}

// A file that is gone when the test is.
struct ScratchFile {
  explicit ScratchFile(const std::string& content) {
    const int fd = ::mkstemp(path.data());
    REQUIRE(fd >= 0);
    ::close(fd);
    std::ofstream(path) << content;
  }
  ~ScratchFile() { std::remove(path.c_str()); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  std::string path = "/tmp/egret-options-XXXXXX";
};

}  // namespace

TEST_CASE("without a file and arguments every option has its default") {
  const auto loaded = Options::load(kTable, std::nullopt, {});
  REQUIRE(loaded);
  const Options& options = loaded.value();
  CHECK(options.integer("workers") == 0);
  CHECK(options.integer("offset") == -1);
  CHECK(options.size("memory") == 64u << 20);
  CHECK(options.duration_ns("timeout") == 1'000'000'000);
  CHECK_FALSE(options.flag("verbose"));
  CHECK(options.text("pin") == "auto");
  CHECK(options.list("listen") == std::vector<std::string>{"tcp:1", "tcp:2"});
  CHECK(options.list("uids").empty());
  CHECK(options.text("secret").empty());
  CHECK_FALSE(options.is_given("workers"));
}

TEST_CASE("the file overrides defaults and arguments override the file, the last one winning") {
  const auto loaded = parse("workers: 3\nslot: 8k\n", {"workers=4", "workers=5"});
  REQUIRE(loaded);
  CHECK(loaded.value().integer("workers") == 5);
  CHECK(loaded.value().size("slot") == 8192);
  CHECK(loaded.value().is_given("slot"));
  CHECK(loaded.value().written("slot") == "8k");
}

TEST_CASE("sizes take units of either case, powers of 1024") {
  const std::pair<const char*, uint64_t> cases[] = {
      {"1048576", 1 << 20}, {"1048576B", 1 << 20}, {"1024K", 1 << 20},  {"1024kb", 1 << 20}, {"1024KiB", 1 << 20},
      {"1m", 1 << 20},      {"1MB", 1 << 20},      {"1 MiB", 1 << 20},  {"2G", 2ull << 30},  {"2GiB", 2ull << 30},
      {"1t", 1ull << 40},   {"1TiB", 1ull << 40},  {"64mib", 64 << 20},
  };
  for (const auto& each : cases) {
    const char* text = each.first;
    const uint64_t bytes = each.second;
    CAPTURE(text);
    const auto loaded = parse("", {std::string("memory=") + text});
    REQUIRE(loaded);
    CHECK(loaded.value().size("memory") == bytes);
  }
}

TEST_CASE("a size that could be meant in powers of 1000 is noted") {
  const auto notes = parse("memory: 1GB\n", {"slot=8k"}).value().notes();
  REQUIRE(notes.size() == 2);
  CHECK(notes[0] == "f.yaml:1: memory: 1GB is read as 1GiB: units of sizes are powers of 1024");
  CHECK(notes[1] == "--set slot=8k: slot: 8k is read as 8KiB: units of sizes are powers of 1024");
  CHECK(parse("memory: 1GiB\nslot: 8192", {"timeout=1m"}).value().notes().empty());
  CHECK(parse("slot: 8192B").value().notes().empty());
}

TEST_CASE("durations take a unit, and a lone 0") {
  const std::pair<const char*, uint64_t> cases[] = {
      {"0", 0},           {"7ns", 7},           {"100us", 100'000},    {"2ms", 2'000'000},
      {"1s", 1000000000}, {"1m", 60000000000u}, {"60 s", 60000000000u}};
  for (const auto& each : cases) {
    const char* text = each.first;
    const uint64_t ns = each.second;
    CAPTURE(text);
    const auto loaded = parse("", {std::string("timeout=") + text});
    REQUIRE(loaded);
    CHECK(loaded.value().duration_ns("timeout") == ns);
  }
}

TEST_CASE("flags are true and false, yes and no, on and off") {
  for (const char* text : {"true", "True", "yes", "on", "ON"})
    CHECK(parse("verbose: " + std::string(text)).value().flag("verbose"));
  for (const char* text : {"false", "no", "off"})
    CHECK_FALSE(parse("verbose: " + std::string(text)).value().flag("verbose"));
}

TEST_CASE("a list is a sequence in either style, one scalar, or parted by commas") {
  const std::vector<std::string> two{"a", "b"};
  CHECK(parse("listen: [a, b]").value().list("listen") == two);
  CHECK(parse("listen:\n  - a\n  - b\nworkers: 1").value().list("listen") == two);
  CHECK(parse("listen: a,b").value().list("listen") == two);
  CHECK(parse("", {"listen=a, b"}).value().list("listen") == two);
  CHECK(parse("", {"listen=[a, b]"}).value().list("listen") == two);
  CHECK(parse("", {"listen=tcp:[::1]:5"}).value().list("listen") == std::vector<std::string>{"tcp:[::1]:5"});
  CHECK(parse("", {"uids=[]"}).value().list("uids").empty());
  CHECK(parse("uids: []").value().list("uids").empty());
  CHECK(parse("", {"uids="}).value().list("uids").empty());
  CHECK(parse("uids: ['1,2', 3]").value().list("uids") == std::vector<std::string>{"1,2", "3"});
}

TEST_CASE("a value may hold an equals sign, and may be quoted") {
  CHECK(parse("", {"secret=a=b"}).value().text("secret") == "a=b");
  CHECK(parse("secret: \"a: b # c\"").value().text("secret") == "a: b # c");
  CHECK(parse("workers: '4'").value().integer("workers") == 4);
}

TEST_CASE("an empty file, comments and a bare mapping are fine") {
  for (const char* yaml : {"", "\n", "# nothing\n", "---\n", "{}", "{workers: 2, pin: off}"}) {
    CAPTURE(yaml);
    CHECK(parse(yaml));
  }
}

TEST_CASE("a wrong value in the file names file, line, key, what is expected and what was got") {
  CHECK(error_of("\n\nworkers: many\n") == "f.yaml:3: workers: expected an integer from 0 to 64, got \"many\"");
  CHECK(error_of("workers: 65") == "f.yaml:1: workers: expected an integer from 0 to 64, got \"65\"");
  CHECK(error_of("workers: 4.5") == "f.yaml:1: workers: expected an integer from 0 to 64, got \"4.5\"");
  CHECK(error_of("workers: 99999999999999999999") ==
        "f.yaml:1: workers: expected an integer from 0 to 64, got \"99999999999999999999\"");
  CHECK(error_of("offset: -6") == "f.yaml:1: offset: expected an integer of at least -5, got \"-6\"");
  CHECK(error_of("memory: 64XB") == "f.yaml:1: memory: expected a size (as 64MiB) of at least 1MiB, got \"64XB\"");
  CHECK(error_of("memory: 1k") == "f.yaml:1: memory: expected a size (as 64MiB) of at least 1MiB, got \"1k\"");
  CHECK(error_of("memory: 9999999999TiB") ==
        "f.yaml:1: memory: expected a size (as 64MiB) of at least 1MiB, got \"9999999999TiB\"");
  CHECK(error_of("slot: -1") == "f.yaml:1: slot: expected a size (as 64MiB) from 512B to 1MiB, got \"-1\"");
  CHECK(error_of("timeout: 2") == "f.yaml:1: timeout: expected a duration (as 100us) from 0 to 60s, got \"2\"");
  CHECK(error_of("timeout: 2h") == "f.yaml:1: timeout: expected a duration (as 100us) from 0 to 60s, got \"2h\"");
  CHECK(error_of("verbose: 2") == "f.yaml:1: verbose: expected true or false, got \"2\"");
  CHECK(error_of("pin: maybe") == "f.yaml:1: pin: expected one of auto, on, off, got \"maybe\"");
  CHECK(error_of("pin: auto|on") == "f.yaml:1: pin: expected one of auto, on, off, got \"auto|on\"");
  CHECK(error_of("listen: []") == "f.yaml:1: listen: expected a list of 1 to 3 values, got 0");
  CHECK(error_of("listen: [1,2,3,4]") == "f.yaml:1: listen: expected a list of 1 to 3 values, got 4");
  CHECK(error_of("listen: a,,b") == "f.yaml:1: listen: expected a list of 1 to 3 values, got \"\" in it");
  CHECK(error_of("secret: 12345678901234567") ==
        "f.yaml:1: secret: expected a text of 0 to 16 bytes, got \"12345678901234567\"");
  CHECK(error_of("secret: \"a\\nb\"") == "f.yaml:1: secret: expected a text of 0 to 16 bytes, got \"a\\nb\"");
}

TEST_CASE("a wrong shape in the file is named the same way") {
  CHECK(error_of("workers:") == "f.yaml:1: workers: expected an integer from 0 to 64, got nothing");
  CHECK(error_of("workers: ~") == "f.yaml:1: workers: expected an integer from 0 to 64, got nothing");
  CHECK(error_of("workers: [1]") == "f.yaml:1: workers: expected an integer from 0 to 64, got a list");
  CHECK(error_of("workers: {a: 1}") == "f.yaml:1: workers: expected an integer from 0 to 64, got a mapping");
  CHECK(error_of("listen: {a: 1}") == "f.yaml:1: listen: expected a list of 1 to 3 values, got a mapping");
  CHECK(error_of("listen: [[a]]") == "f.yaml:1: listen: expected a value, got a list in a list");
  CHECK(error_of("listen:\n- {a: b}") == "f.yaml:2: listen: expected a value, got a mapping");
  CHECK(error_of("listen:\n- a\n-") == "f.yaml:3: listen: expected a value, got nothing");
  CHECK(error_of("pin: on\nworker: 1") == "f.yaml:2: worker: unknown option; did you mean workers?");
  CHECK(error_of("worker: {a: 1}") == "f.yaml:1: worker: unknown option; did you mean workers?");
  CHECK(error_of("Time-out: 1") == "f.yaml:1: Time-out: unknown option; did you mean timeout?");
  CHECK(error_of("lsiten: a") == "f.yaml:1: lsiten: unknown option; did you mean listen?");
  CHECK(error_of("x: 1") == "f.yaml:1: x: unknown option");
  CHECK(error_of("nothing_like_it: 1") == "f.yaml:1: nothing_like_it: unknown option");
  CHECK(error_of(std::string(5000, 'w') + ": 1").find("did you mean") == std::string::npos);
  CHECK(error_of("workers: 1\nworkers: 1") == "f.yaml:2: workers: given twice");
  CHECK(error_of("\"a\\nb\": [[1]]") == "f.yaml:1: \"a\\nb\": expected a value, got a list in a list");
  CHECK(error_of("? [a]\n: b") == "f.yaml:1: expected a key, got a list");
  CHECK(error_of("? {a: b}\n: b") == "f.yaml:1: expected a key, got a mapping");
  CHECK(error_of("- a") == "f.yaml:1: expected a mapping of options (key: value), got a list");
  CHECK(error_of("hello") == "f.yaml:1: expected a mapping of options (key: value), got \"hello\"");
  CHECK(error_of("workers: 1\n---\nworkers: 2") == "f.yaml: expected one YAML document, got several");
  CHECK(error_of("---\n---\nworkers: 2") == "f.yaml: expected one YAML document, got several");
  CHECK(error_of("workers: 1\n...\njunk").find("f.yaml") == 0);
  CHECK(error_of("\"a\\nb\": 1") == "f.yaml:1: \"a\\nb\": unknown option");
}

TEST_CASE("what YAML offers to the hostile is refused") {
  CHECK(error_of("listen: &a [x]\nuids: *a") == "f.yaml:1: anchors are not supported");
  CHECK(error_of("pin: &a on") == "f.yaml:1: anchors are not supported");
  CHECK(error_of("pin: !!str on").find("f.yaml:1: tags are not supported") == 0);
  CHECK(error_of("pin: *nobody").find("f.yaml:1: ") == 0);
  CHECK(error_of(std::string(100'000, '[')).find("f.yaml:1: ") == 0);
  CHECK(error_of(std::string(100'000, '{')).find("f.yaml:1: ") == 0);
  CHECK(error_of("listen: " + std::string(100'000, '[')).find("f.yaml:1: ") == 0);
  std::string dashes;
  for (int i = 0; i < 50'000; ++i) dashes += "- ";
  CHECK(error_of(dashes).find("f.yaml:1: ") == 0);
  CHECK(error_of("listen: " + dashes).find("f.yaml:1: ") == 0);
  std::string questions;
  for (int i = 0; i < 50'000; ++i) questions += "? ";
  CHECK(error_of(questions).find("f.yaml:1: ") == 0);
  CHECK(error_of(std::string("\0\1\2\xff\xfe", 5)) != "no error");
}

TEST_CASE("bad syntax names file and line") {
  CHECK(error_of("workers: 1\n  pin: on\n").find("f.yaml:2: not YAML: ") == 0);
  CHECK(error_of("workers: 1\nlisten: [a\n").find("f.yaml:") == 0);
  CHECK(error_of("workers: \"1\n").find("f.yaml:") == 0);
  CHECK(error_of("workers: 1\n\tpin: on\n").find("f.yaml:2: not YAML: ") == 0);
  CHECK(error_of("workers = 1\n").find("f.yaml:1: expected a mapping of options (key: value)") == 0);
}

TEST_CASE("a wrong --set names the argument and the key") {
  CHECK(set_error("workers=many") == "--set workers=many: workers: expected an integer from 0 to 64, got \"many\"");
  CHECK(set_error("workers=") == "--set workers=: workers: expected an integer from 0 to 64, got \"\"");
  CHECK(set_error("workers") == "--set workers: expected KEY=VALUE");
  CHECK(set_error("=1") == "--set =1: expected KEY=VALUE");
  CHECK(set_error("") == "--set : expected KEY=VALUE");
  CHECK(set_error("worker=1") == "--set worker=1: worker: unknown option; did you mean workers?");
  CHECK(set_error("listen=") == "--set listen=: listen: expected a list of 1 to 3 values, got 0");
  CHECK(set_error("secret=a\nb") == "--set \"secret=a\\nb\": secret: expected a text of 0 to 16 bytes, got \"a\\nb\"");
}

TEST_CASE("files that cannot be read are named") {
  const auto missing = Options::load(kTable, "/nonexistent/f.yaml", {});
  REQUIRE_FALSE(missing);
  CHECK(missing.message() == "/nonexistent/f.yaml: No such file or directory");
  CHECK(Options::load(kTable, "/tmp", {}).message() == "/tmp: Is a directory");
  CHECK(Options::load(kTable, "/dev/zero", {}).message() == "/dev/zero: larger than 1MiB");
}

TEST_CASE("a file is read, and errors lead with its path as given") {
  const ScratchFile good("workers: 2 # two\n");
  const auto loaded = Options::load(kTable, good.path, {});
  REQUIRE(loaded);
  CHECK(loaded.value().integer("workers") == 2);
  const ScratchFile bad("workers: x\n");
  CHECK(Options::load(kTable, bad.path, {}).message() ==
        bad.path + ":1: workers: expected an integer from 0 to 64, got \"x\"");
}

TEST_CASE("checks beyond the table blame the place that gave the value") {
  const auto loaded = parse("workers: 3", {"slot=1k"});
  REQUIRE(loaded);
  CHECK(loaded.value().error("workers", "too many for this machine").message() ==
        "f.yaml:1: workers: too many for this machine");
  CHECK(loaded.value().error("slot", "no").message() == "--set slot=1k: slot: no");
  CHECK(loaded.value().error("memory", "no").message() == "memory: no");
}

TEST_CASE("help shows each option with type, default and wrapped help") {
  const std::string help = help_text(kTable, 80);
  CHECK(help.find("  workers (integer, 0 to 64; default 0; applied by a restart)\n      Threads.\n") !=
        std::string::npos);
  CHECK(help.find("  slot (size, 512B to 1MiB; default 4KiB; applied by a restart)\n") != std::string::npos);
  CHECK(help.find("  pin (auto, on, off; default auto; applied by a restart)\n") != std::string::npos);
  CHECK(help.find("  uids (list; default empty; applied by a restart)\n") != std::string::npos);
  const OptionRow long_row{.name = "x", .help = "one two three four five six"};
  CHECK(help_text(std::span(&long_row, 1), 20)
            .ends_with("  x (text; default empty; applied by a restart)\n      one two three\n      four five six\n"));
}

TEST_CASE("help shows options by group, marks the usual ones, and says what measures those for experts") {
  constexpr OptionRow kRows[] = {
      {.name = "a", .help = "One.", .group = OptionGroup::kListening, .is_usual = true},
      {.name = "b", .help = "Two.", .group = OptionGroup::kListening},
      {.name = "c", .help = "Three.", .group = OptionGroup::kExpert, .measured_by = "a clock"},
  };
  CHECK(help_text(kRows, 80) ==
        "Listening\n\n  a* (text; default empty; applied by a restart)\n      One.\n"
        "  b (text; default empty; applied by a restart)\n      Two.\n"
        "\nExpert: change one only with a measurement before and after\n\n"
        "  c (text; default empty; applied by a restart)\n      Three. Measured by: a clock.\n");
  const std::string yaml = help_yaml("egret-test", kRows);
  CHECK(yaml.find("\n# --- Listening\n\n# (usual) One. (text; applied by a restart)\n#a: \"\"\n\n# Two. ") !=
        std::string::npos);
  CHECK(yaml.find("\n# --- Expert") != std::string::npos);
}

TEST_CASE("the Markdown table escapes what would break it") {
  const OptionRow row{.name = "x",
                      .type = OptionType::kText,
                      .default_value = "a|b",
                      .help = "This | that.",
                      .group = OptionGroup::kLimits,
                      .is_usual = true};
  CHECK(help_markdown(std::span(&row, 1)) ==
        "| option | group | type | default | applied by | what it does |\n| --- | --- | --- | --- | --- | --- |\n"
        "| `x` | limits, **usual** | text | `a\\|b` | restart | This \\| that. |\n");
}

TEST_CASE("the YAML for conf/ names every option at its default, commented out") {
  const std::string yaml = help_yaml("egret-test", kTable);
  CHECK(yaml.find("\n# Threads. (integer, 0 to 64; applied by a restart)\n#workers: 0\n") != std::string::npos);
  CHECK(yaml.find("\n#listen: [\"tcp:1\", \"tcp:2\"]\n") != std::string::npos);
  CHECK(parse(yaml));

  std::string uncommented;
  std::istringstream lines(yaml);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#') && !line.starts_with("# ")) line.erase(0, 1);
    uncommented += line + "\n";
  }
  const auto loaded = parse(uncommented);
  REQUIRE(loaded);
  const Options defaults = parse("").value();
  for (const OptionRow& row : kTable) {
    CHECK(loaded.value().is_given(row.name));
    CHECK(loaded.value().written(row.name) == defaults.written(row.name));
  }
}

// --- auto

TEST_CASE("numbers and sizes that may be auto are told apart from every number, and say so when they are wrong") {
  constexpr OptionRow kAutos[] = {
      {.name = "most", .type = OptionType::kInteger, .default_value = "auto", .help = "N.", .max = 9, .has_auto = true},
      {.name = "room", .type = OptionType::kSize, .default_value = "auto", .help = "M.", .max = 1024, .has_auto = true},
      {.name = "plain", .type = OptionType::kInteger, .default_value = "0", .help = "P."},
  };
  const auto read = [&](std::vector<std::string> arguments) { return Options::parse(kAutos, "", "", arguments); };
  const Options defaults = read({}).value();
  CHECK(defaults.is_auto("most"));
  CHECK(defaults.is_auto("room"));
  CHECK(defaults.integer("most") == -1);
  CHECK(defaults.notes().empty());
  const Options given = read({"most=0", "room=1k"}).value();
  CHECK_FALSE(given.is_auto("most"));
  CHECK_FALSE(given.is_auto("room"));
  CHECK(given.size("room") == 1024);
  CHECK(given.differing_from(defaults) == std::vector<std::string_view>{"most", "room"});
  CHECK(Options::parse(kAutos, "most: auto\nroom: auto\n", "f.yaml", {}).value().differing_from(defaults).empty());
  CHECK(read({"most=auto "}).message().find("expected auto or an integer from 0 to 9, got") != std::string::npos);
  CHECK(read({"room=2k"}).message().find("expected auto or a size (as 64MiB) from 0 to 1KiB") != std::string::npos);
  CHECK_FALSE(read({"plain=auto"}).is_ok());
  CHECK(help_text(kAutos).find("most (auto, or integer, 0 to 9; default auto;") != std::string::npos);
}

// --- a reload

namespace {

constexpr OptionRow kReloadTable[] = {
    {.name = "threads", .type = OptionType::kInteger, .default_value = "1", .help = "How many."},
    {.name = "level",
     .type = OptionType::kChoice,
     .default_value = "low",
     .help = "How much.",
     .choices = "low|high",
     .applied_by = AppliedBy::kReload},
    {.name = "memory", .type = OptionType::kSize, .default_value = "1KiB", .help = "Bytes."},
    {.name = "users", .type = OptionType::kList, .default_value = "", .help = "Who.", .applied_by = AppliedBy::kReload},
};
using Names = std::vector<std::string_view>;

Options of(const std::vector<std::string>& arguments) {
  auto options = Options::parse(kReloadTable, "", "", arguments);
  REQUIRE(options.is_ok());
  return options.value();
}

}  // namespace

TEST_CASE("a reload renews what it may, keeps what needs a restart, and says which of that would have changed") {
  const Options before = of({"threads=2", "memory=2KiB"});
  Names kept;
  const Options after = before.renewed_by(of({"threads=3", "level=high", "memory=2048", "users=a,b"}), kept);
  CHECK(after.integer("threads") == 2);
  CHECK(after.text("level") == "high");
  CHECK(after.list("users") == std::vector<std::string>{"a", "b"});
  CHECK(kept == Names{"threads"});
  CHECK(before.differing_from(after) == Names{"level", "users"});
  CHECK(after.differing_from(after).empty());
}

TEST_CASE("whether a value was given is renewed with it") {
  Names kept;
  const Options after = of({"threads=2"}).renewed_by(of({"level=low"}), kept);
  CHECK(after.is_given("threads"));
  CHECK(after.is_given("level"));
  CHECK(kept == Names{"threads"});
}

TEST_CASE(
    "the texts of two different values differ: lists show the entries that only one has, long texts are not cut") {
  constexpr OptionRow kRows[] = {
      {.name = "pool", .type = OptionType::kList, .default_value = "", .help = "Who."},
      {.name = "file", .type = OptionType::kText, .default_value = "", .help = "Where."},
  };
  const auto beside = [&](const std::string& name, const std::string& own, const std::string& other) {
    const auto load = [&](const std::string& value) {
      return Options::parse(kRows, "", "", std::vector<std::string>{name + "=" + value}).value();
    };
    return load(own).written_beside(load(other), name);
  };
  CHECK(beside("pool", "a,b,c", "a,b,d") == "[..., \"c\"]");
  CHECK(beside("pool", "a,b,c,d", "b,c,d") == "[\"a\", ...]");
  CHECK(beside("pool", "a,b,c", "b") == "[\"a\", ..., \"c\"]");
  CHECK(beside("pool", "b", "a,b,c") == "[...]");
  CHECK(beside("pool", "", "a") == "[]");
  CHECK(beside("pool", "a,b", "b,a") == "[\"a\", \"b\"]");
  const std::string start(100, 'x');
  CHECK(beside("pool", start + "1", start + "2") == "[\"" + start + "1\"]");
  CHECK(beside("file", start + "1", start + "2") == "\"" + start + "1\"");
}
