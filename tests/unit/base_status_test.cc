// Small parts of base: outcomes, descriptors, text.
#include <cerrno>
#include <memory>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/status.h"
#include "base/text.h"
#include "base/unique_fd.h"

using namespace egret::base;

namespace {
bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}
}  // namespace

TEST_CASE("a status is ok or says what went wrong") {
  CHECK(Status::ok());
  CHECK_FALSE(Status::error("broken"));
  CHECK(Status::error("broken").message() == "broken");
  CHECK_FALSE(Status::error(""));  // an error stays an error even when its author was lazy
  CHECK(Status::system_error("cannot open /x", ENOENT).message() == "cannot open /x: No such file or directory");
}

TEST_CASE("an expected holds a value or the status that says why not") {
  const Expected<int> good = 3;
  const Expected<int> bad = Status::error("no");
  CHECK(good);
  CHECK(good.value() == 3);
  CHECK(good.status());
  CHECK_FALSE(bad);
  CHECK(bad.message() == "no");
  Expected<std::unique_ptr<int>> owner = std::make_unique<int>(7);
  CHECK(*std::move(owner.value()) == 7);
}

TEST_CASE("a descriptor is closed by its owner, once, and moves") {
  int raw = -1;
  {
    UniqueFd first(::open("/dev/null", O_RDONLY));
    raw = first.get();
    REQUIRE(is_open(raw));
    UniqueFd second(std::move(first));
    CHECK_FALSE(first.is_open());  // NOLINT(bugprone-use-after-move): the moved-from state is what is tested
    CHECK(second.get() == raw);
  }
  CHECK_FALSE(is_open(raw));
  UniqueFd kept(::open("/dev/null", O_RDONLY));
  raw = kept.release();
  kept.reset();
  CHECK(is_open(raw));
  ::close(raw);
}

TEST_CASE("quoting makes anything printable, on one line and bounded") {
  CHECK(quoted("plain") == "\"plain\"");
  CHECK(quoted("a\"b\\c\n\r\t") == "\"a\\\"b\\\\c\\n\\r\\t\"");
  CHECK(quoted(std::string_view("\0\x7f\xff", 3)) == "\"\\x00\\x7f\\xff\"");
  CHECK(quoted("abcdef", 3) == "\"abc...\"");
  CHECK(one_line("a\"b\nc\xc3\xa9") == "a\"b\\nc\xc3\xa9");
}

TEST_CASE("figures are written with the largest unit that divides them") {
  CHECK(counted(1, "worker") == "1 worker");
  CHECK(counted(0, "worker") == "0 workers");
  CHECK(counted(12, "worker") == "12 workers");
  CHECK(size_text(0) == "0");
  CHECK(size_text(1000) == "1000B");
  CHECK(size_text(4096) == "4KiB");
  CHECK(size_text(64u << 20) == "64MiB");
  CHECK(duration_text(0) == "0");
  CHECK(duration_text(1'500'000) == "1500us");
  CHECK(duration_text(2'000'000'000) == "2s");
}
