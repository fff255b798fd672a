// Files as a whole: read up to a limit, and replaced so that neither a reader nor a crash ever sees half of one.
// Blocks on the disk, and replace_file() waits until the disk has the content: cold path; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace egret::base {

// What the open file holds from here on. Of a file that holds more than `limit` bytes: the first limit + 1, so that
// the caller sees that it is too large. `failure` begins the error's sentence.
Expected<std::string> read_up_to(int fd, size_t limit, const std::string& failure);

enum class FileTrust : uint8_t {
  kGiven,  // an operator's file, perhaps behind symbolic links: others than its owner and group may not write it
  kOwn,    // written by this program: no symbolic link; belongs to root or this user, who alone may write it
};

// The content of the regular file `path`, of at most `limit` bytes. Never waits for the writer of a pipe. Refuses a
// file that is not to be trusted, in a sentence that says what to do.
Expected<std::string> read_trusted_file(const std::string& path, size_t limit, FileTrust trust);

// Writes a file beside it, mode 0640, and renames it to `path`.
Status replace_file(const std::string& path, std::string_view content);

}  // namespace egret::base
