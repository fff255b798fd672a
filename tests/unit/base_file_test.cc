// Files as a whole: whose are read, and how one is replaced.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "temporary_folder.h"

using namespace egret::base;

namespace {

struct Folder : egret::TemporaryFolder {
  std::string file(const std::string& content, mode_t mode = 0644) const {
    const std::string name = path + "/list";
    std::ofstream(name, std::ios::binary) << content;
    REQUIRE(::chmod(name.c_str(), mode) == 0);
    return name;
  }
};

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string error_of(const std::string& path, FileTrust trust = FileTrust::kGiven) {
  auto content = read_trusted_file(path, 100, trust);
  return content ? "" : content.message();
}

}  // namespace

TEST_CASE("a file is read as it is, up to the limit") {
  const Folder folder;
  for (const std::string& content : {std::string(), std::string("a\n\0b", 4), std::string(100, 'x')}) {
    auto read = read_trusted_file(folder.file(content), 100, FileTrust::kGiven);
    REQUIRE_MESSAGE(read.is_ok(), read.message());
    CHECK(read.value() == content);
  }
  const std::string large = folder.file(std::string(101, 'x'));
  CHECK(error_of(large) == large + " is larger than 100B");
}

TEST_CASE("only regular files are read, and a pipe without a writer is not waited for") {
  const Folder folder;
  CHECK(error_of(folder.at("none")) == "cannot read " + folder.path + "/none: No such file or directory");
  CHECK(error_of(folder.path) == folder.path + " is not a regular file");
  const std::string pipe = folder.at("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(error_of(pipe) == pipe + " is not a regular file");
}

TEST_CASE("a file that every user can write is refused") {
  const Folder folder;
  const std::string open = folder.file("x", 0666);
  CHECK(error_of(open) == open + " can be written by every user: chmod o-w it");
}

TEST_CASE("a file of our own is written by its owner alone, who is root or this user, and is no link") {
  const Folder folder;
  const std::string ours = folder.file("x", 0640);
  CHECK(error_of(ours, FileTrust::kOwn).empty());
  const std::string link = folder.at("link");
  std::filesystem::create_symlink(ours, link);
  CHECK(error_of(link).empty());
  CHECK(error_of(link, FileTrust::kOwn) == "cannot read " + link + ": Too many levels of symbolic links");
  folder.file("x", 0660);
  CHECK(error_of(ours).empty());
  CHECK(error_of(ours, FileTrust::kOwn) == ours + " can be written by its group: chmod g-w it");
}

TEST_CASE("a file is replaced as a whole, and nothing is left beside it") {
  const Folder folder;
  const std::string path = folder.at("kept");
  for (const std::string content : {"one\n", "two, which is longer\n", ""}) {
    const Status written = replace_file(path, content);
    REQUIRE_MESSAGE(written.is_ok(), written.message());
    CHECK(content_of(path) == content);
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
  }
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0640);
}

TEST_CASE("a link in the file's place is replaced, not written through") {
  const Folder folder;
  const std::string other = folder.file("another's");
  const std::string path = folder.at("kept");
  std::filesystem::create_symlink(other, path);
  REQUIRE(replace_file(path, "ours"));
  CHECK(content_of(other) == "another's");
  CHECK(content_of(path) == "ours");
}

TEST_CASE("what cannot be written leaves the file as it was, and nothing beside it") {
  const Folder folder;
  const std::string path = folder.at("folder");
  std::filesystem::create_directory(path);
  CHECK(replace_file(path, "x").message() == "cannot replace " + path + ": Is a directory");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
  CHECK_FALSE(replace_file(folder.path + "/none/kept", "x"));
}
