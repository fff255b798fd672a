#include "bench/server/far_host.h"

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include <sched.h>

namespace egret::bench {
namespace {

using base::Expected;
using base::Status;

constexpr const char* kNear = "10.211.0.1";
constexpr const char* kFar = "10.211.0.2";
constexpr int kPolls = 500;  // of 10 ms
constexpr timespec kPoll{0, 10'000'000};
constexpr const char* kDone = "joined\n";  // what the script prints in the end

std::string network_of(const std::string& process) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/" + process + "/ns/net", error).string();
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string entering(pid_t holder) {
  return "--net=/proc/" + std::to_string(holder) + "/ns/net";
}

}  // namespace

FarHost::FarHost(TemporaryFolder folder, ChildProcess holder)
    : folder_(std::move(folder)), holder_(std::move(holder)), address_(kFar) {}

Expected<std::unique_ptr<FarHost>> FarHost::make(const std::string& congestion) {
  if (::unshare(CLONE_NEWNET) < 0) {
    return Status::system_error("this machine refuses a network namespace (it takes root and CAP_SYS_ADMIN)", errno);
  }
  auto folder = TemporaryFolder::make();
  if (!folder) return folder.status();
  auto holder = ChildProcess::start({"unshare", "--net", "sleep", "infinity"}, folder.value().path() + "/holder.log");
  if (!holder) return holder.status();
  std::unique_ptr<FarHost> made(new FarHost(std::move(folder.value()), std::move(holder.value())));
  if (Status joined = made->join(congestion); !joined) return joined;
  return made;
}

std::vector<std::string> FarHost::on_far(std::vector<std::string> command) const {
  command.insert(command.begin(), {"nsenter", entering(holder_.pid()), "--"});
  return command;
}

// Waits until the holder has its namespace, then puts the veth pair between.
Status FarHost::join(const std::string& congestion) {
  const std::string holder = std::to_string(holder_.pid());
  for (int i = 0; network_of(holder) == network_of("self"); ++i) {
    if (i == kPolls || holder_.has_ended()) {
      return Status::error("this machine refuses a second network namespace: " +
                           text_of(folder_.path() + "/holder.log"));
    }
    ::nanosleep(&kPoll, nullptr);
  }
  const std::string far = "nsenter " + entering(holder_.pid()) + " -- ";
  const std::string choose = "sh -c 'echo " + congestion + " >/proc/sys/net/ipv4/tcp_congestion_control'\n";
  const std::string script =
      "set -e\n" + choose + far + choose + "ip link set lo up\nip link add near type veth peer name far netns " +
      holder + "\nip address add " + kNear + "/24 dev near\nip link set near up\n" + far + "ip link set lo up\n" + far +
      "ip address add " + kFar + "/24 dev far\n" + far + "ip link set far up\necho joined\n";
  const std::string log = folder_.path() + "/join.log";
  auto joining = ChildProcess::start({"sh", "-c", script}, log);
  if (!joining) return joining.status();
  for (int i = 0; i < kPolls && !joining.value().has_ended(); ++i) ::nanosleep(&kPoll, nullptr);
  const std::string said = text_of(log);
  if (said.ends_with(kDone)) return Status::ok();
  return Status::error(
      "this machine refuses a veth pair between two network namespaces, or that congestion control (ip, nsenter): " +
      said);
}

}  // namespace egret::bench
