// Options from files: their YAML becomes entries (options_yaml.cc), and those become values (options.cc).
#include <cerrno>

#include <fcntl.h>

#include "base/file.h"
#include "base/options/options.h"
#include "base/options/options_yaml.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace egret::base {

namespace {

Expected<std::string> read_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.is_open()) return Status::system_error(path, errno);
  auto content = read_up_to(fd.get(), kMaxConfigBytes, path);
  if (content && content.value().size() > kMaxConfigBytes) {
    return Status::error(path + ": larger than " + size_text(kMaxConfigBytes));
  }
  return content;
}

}  // namespace

Expected<Options> Options::parse(std::span<const OptionRow> table, std::string_view yaml, const std::string& file_name,
                                 std::span<const std::string> set_arguments) {
  std::vector<OptionEntry> entries;
  if (Status status = parse_flat_yaml(yaml, file_name, entries); !status) return status;
  return of_entries(table, entries, file_name, set_arguments);
}

Expected<Options> Options::load(std::span<const OptionRow> table, const std::optional<std::string>& yaml_file,
                                std::span<const std::string> set_arguments) {
  if (!yaml_file) return parse(table, "", "", set_arguments);
  auto content = read_file(*yaml_file);
  if (!content) return content.status();
  return parse(table, content.value(), *yaml_file, set_arguments);
}

}  // namespace egret::base
