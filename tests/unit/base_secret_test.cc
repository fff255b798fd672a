// The file of a secret: which bytes are read, and which files are refused.
#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options/secret.h"
#include "temporary_folder.h"

using namespace egret::base;

namespace {

struct Folder : egret::TemporaryFolder {
  std::string file(const std::string& content, mode_t mode = 0600) const {
    const std::string name = path + "/secret";
    std::filesystem::remove(name);
    std::ofstream(name, std::ios::binary) << content;
    REQUIRE(::chmod(name.c_str(), mode) == 0);
    return name;
  }
};

std::string error_of(const std::string& path) {
  auto secret = read_secret(path);
  return secret ? "" : secret.message();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::string kGood = "0123456789abcdef";

}  // namespace

TEST_CASE("by default no secret is set") {
  CHECK_FALSE(Secret().is_set());
  CHECK(Secret(kGood).is_set());
}

TEST_CASE("a secret is the file's bytes less one newline at the end") {
  const Folder folder;
  const std::string binary("\0\1\2\xff 56789abcdef", 16);
  for (const std::string& content : {kGood, kGood + "\n", kGood + "\n\n", kGood + "\r\n", binary, binary + "\n"}) {
    auto secret = read_secret(folder.file(content));
    REQUIRE_MESSAGE(secret.is_ok(), secret.message());
    CHECK(secret.value().bytes() == (content.ends_with('\n') ? content.substr(0, content.size() - 1) : content));
  }
}

TEST_CASE("16 to 4096 bytes, the newline not counted") {
  const Folder folder;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{15}}) {
    for (const char* end : {"", "\n"}) {
      const std::string error = error_of(folder.file(std::string(size, 'x') + end));
      CHECK_MESSAGE(has(error, "holds a secret of " + std::to_string(size) + " bytes: 16 to 4096 are needed"), error);
    }
  }
  for (const size_t size : {size_t{16}, size_t{4096}}) {
    for (const char* end : {"", "\n"}) CHECK(error_of(folder.file(std::string(size, 'x') + end)) == "");
  }
  for (const size_t size : {size_t{4097}, size_t{4098}, size_t{1 << 20}}) {
    CHECK(has(error_of(folder.file(std::string(size, 'x'))), "a secret of more than 4096 bytes"));
  }
  CHECK(has(error_of(folder.file(std::string(4096, 'x') + "\n\n")), "more than 4096"));
}

TEST_CASE("a file that others than its owner may touch is refused, whatever they may do with it") {
  const Folder folder;
  for (const mode_t mode : {0600, 0400, 0700}) CHECK(error_of(folder.file(kGood, mode)) == "");
  for (const mode_t mode : {0640, 0620, 0610, 0604, 0602, 0601, 0644, 0666, 0777}) {
    const std::string error = error_of(folder.file(kGood, mode));
    CHECK_MESSAGE(has(error, "others than its owner may use it: chmod 0400"), error);
  }
  CHECK(has(error_of(folder.file(kGood, 0644)), "has mode 0644"));
}

TEST_CASE("a file of another user is refused") {
  if (::geteuid() != 0) return;  // only root can give a file away
  const Folder folder;
  const std::string name = folder.file(kGood);
  REQUIRE(::chown(name.c_str(), 12345, 0) == 0);
  CHECK(has(error_of(name), "belongs to uid 12345: it must be root's or that of uid 0"));
}

TEST_CASE("what is not there, not a file or not to be read is refused without waiting") {
  const Folder folder;
  CHECK(has(error_of(folder.path + "/none"), "No such file or directory"));
  CHECK(has(error_of(folder.path), "is not a regular file"));
  const std::string pipe = folder.path + "/pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(has(error_of(pipe), "is not a regular file"));
  CHECK(has(error_of(""), "No such file or directory"));
}

TEST_CASE("a link to a good file is as good as the file") {
  const Folder folder;
  const std::string link = folder.path + "/link";
  REQUIRE(::symlink(folder.file(kGood).c_str(), link.c_str()) == 0);
  CHECK(error_of(link) == "");
  folder.file(kGood, 0644);
  CHECK(has(error_of(link), "has mode 0644"));
}
