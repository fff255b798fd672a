// What --doctor says of hosts that are made up: trees of files as the kernel shows them.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "transport/doctor.h"
#include "transport/verbs/queue_sizes.h"

using namespace egret::transport;
using egret::base::Finding;
using egret::base::Findings;
using egret::base::UniqueFd;
using egret::base::Verdict;
namespace fs = std::filesystem;

namespace {

const std::string kGid10_9 = "0000:0000:0000:0000:0000:ffff:0a09:0001";
const std::string kLinkLocal = "fe80:0000:0000:0000:5054:00ff:fe09:0001";
const std::string kNoGid = "0000:0000:0000:0000:0000:0000:0000:0000";
constexpr uint64_t kMiB = 1 << 20;

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/egret-doctor-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  void write(const std::string& name, const std::string& line) const {
    const fs::path file = path + "/" + name;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << line << "\n";
  }
  void remove(const std::string& name) const { REQUIRE(fs::remove_all(path + "/" + name) > 0); }
  std::string path;
};

// A host with one Soft-RoCE device on which all is well; tests take something away.
struct Host {
  Host() {
    add_device("rxe0", "uverbs0");
    folder.write("sys/class/misc/rdma_cm/abi_version", "1");
    folder.write("dev/infiniband/rdma_cm", "");
    folder.write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "0");
    folder.write("proc/self/status", "Name:\tegret\nCapEff:\t0000000000000000");
    folder.write("proc/self/uid_map", "         0          0 4294967295");
  }
  void add_device(const std::string& name, const std::string& file) const {
    const std::string port = "sys/class/infiniband/" + name + "/ports/1/";
    folder.write("sys/class/infiniband/" + name + "/parent", "eth7");
    folder.write(port + "state", "4: ACTIVE");
    folder.write(port + "link_layer", "Ethernet");
    add_gid(name, 0, kLinkLocal, "RoCE v2");
    add_gid(name, 1, kGid10_9, "RoCE v2");
    folder.write(port + "gids/2", kNoGid);
    folder.write("sys/class/infiniband_verbs/" + file + "/ibdev", name);
    folder.write("dev/infiniband/" + file, "");
  }
  void add_gid(const std::string& device, int index, const std::string& gid, const std::string& type) const {
    const std::string port = "sys/class/infiniband/" + device + "/ports/1/";
    folder.write(port + "gids/" + std::to_string(index), gid);
    folder.write(port + "gid_attrs/types/" + std::to_string(index), type);
    folder.write(port + "gid_attrs/ndevs/" + std::to_string(index), "eth7");
  }
  HostFiles files() const {
    return {.sys = folder.path + "/sys", .dev = folder.path + "/dev", .proc = folder.path + "/proc"};
  }
  Findings examined() const {
    Findings findings;
    check_rdma(files(), library, limit, needs, findings);
    return findings;
  }
  Folder folder;
  VerbsLibrary library{.devices = 1};
  PinLimit limit{.bytes = 256 * kMiB};
  RdmaNeeds needs{.is_configured = true,
                  .sessions = 256,
                  .session_bytes = kMiB,
                  .arithmetic = "256 sessions (max_sessions) x 1MiB (session_memory)"};
};

std::string text_of(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings.all()) text += to_line(finding) + "\n";
  return text;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The one finding that is not well, as a line; the whole text when there is another number of them.
std::string only_problem(const Findings& findings) {
  std::string found;
  int problems = 0;
  for (const Finding& finding : findings.all()) {
    if (finding.verdict == Verdict::kOk) continue;
    CHECK_MESSAGE(!finding.advice.empty(), finding.subject);
    found = to_line(finding);
    ++problems;
  }
  return problems == 1 ? found : "not one problem:\n" + text_of(findings);
}

void check_problem(const Findings& findings, const std::vector<std::string>& parts) {
  const std::string problem = only_problem(findings);
  for (const std::string& part : parts) CHECK_MESSAGE(has(problem, part), part << " is not in\n" << problem);
}

}  // namespace

TEST_CASE("a host on which all is well: every finding is ok, and says what is there") {
  const Host host;
  const std::string text = text_of(host.examined());
  for (const char* line :
       {"ok   rxe0 port 1: state 4: ACTIVE, Ethernet (RoCE)\n",
        "ok   rxe0 port 1 GIDs: 0 = fe80::5054:ff:fe09:1 (RoCE v2, eth7), 1 = ::ffff:10.9.0.1 (RoCE v2, eth7)\n",
        "ok   /dev/infiniband/uverbs0: can be opened", "ok   /dev/infiniband/rdma_cm: can be opened",
        "ok   libibverbs: has a driver for 1 device\n", "ok   fork safety: ",
        "ok   memlock: 256MiB may be pinned, 256MiB may be needed: 256 sessions (max_sessions) x 1MiB",
        "ok   huge pages: not used"}) {
    CHECK_MESSAGE(has(text, line), line << " is not in\n" << text);
  }
  CHECK_FALSE(host.examined().has_failure());
  CHECK_FALSE(has(text, "warn"));
  CHECK_FALSE(has(text, "=>"));
}

TEST_CASE("no device at all") {
  const Host host;
  host.folder.remove("sys/class/infiniband");
  check_problem(host.examined(), {"FAIL RDMA: no device in /sys/class/infiniband", "rdma link add"});
}

TEST_CASE("a port that is down fails, unless another is up") {
  const Host host;
  host.folder.write("sys/class/infiniband/rxe0/ports/1/state", "1: DOWN");
  check_problem(host.examined(), {"FAIL rxe0 port 1: state 1: DOWN", "ip link set IFACE up"});
  host.add_device("rxe1", "uverbs1");
  check_problem(host.examined(), {"warn rxe0 port 1: state 1: DOWN"});
}

TEST_CASE("an InfiniBand port gets the advice for InfiniBand") {
  const Host host;
  host.folder.write("sys/class/infiniband/rxe0/ports/1/link_layer", "InfiniBand");
  host.folder.write("sys/class/infiniband/rxe0/ports/1/state", "2: INIT");
  check_problem(host.examined(), {"FAIL rxe0 port 1: state 2: INIT, InfiniBand", "opensm"});
}

TEST_CASE("GIDs: none, only link-local ones, only RoCE v1") {
  {
    const Host host;
    for (const char* index : {"0", "1"}) {
      host.folder.write(std::string("sys/class/infiniband/rxe0/ports/1/gids/") + index, kNoGid);
    }
    check_problem(host.examined(), {"FAIL rxe0 port 1 GIDs: none", "ip addr add"});
    host.add_device("rxe1", "uverbs1");
    check_problem(host.examined(), {"warn rxe0 port 1 GIDs: none"});
  }
  {
    const Host host;
    host.folder.write("sys/class/infiniband/rxe0/ports/1/gids/1", kNoGid);
    check_problem(host.examined(), {"warn rxe0 port 1 GIDs: 0 = fe80::5054:ff:fe09:1", "link-local", "ip addr add"});
  }
  {
    const Host host;
    host.add_gid("rxe0", 0, kLinkLocal, "IB/RoCE v1");
    host.add_gid("rxe0", 1, kGid10_9, "IB/RoCE v1");
    check_problem(host.examined(), {"warn rxe0 port 1 GIDs", "(RoCE v1, eth7)", "cma_roce_mode"});
  }
}

TEST_CASE("an eRDMA device calls itself iWARP, and is not told to enable RoCE v2") {
  const Host host;
  host.folder.remove("sys/class/infiniband/rxe0/parent");
  host.folder.write("sys/class/infiniband/rxe0/node_type", "4: RNIC");
  fs::create_directories(host.folder.path + "/sys/class/infiniband/rxe0/device");
  fs::create_symlink("../../../../bus/pci/drivers/erdma",
                     host.folder.path + "/sys/class/infiniband/rxe0/device/driver");
  for (const int index : {0, 1}) host.add_gid("rxe0", index, kGid10_9, "IB/RoCE v1");
  const std::string text = text_of(host.examined());
  CHECK(has(text, "ok   rxe0 port 1: state 4: ACTIVE, Ethernet (iWARP)\n"));
  CHECK(has(text, "ok   rxe0 port 1 GIDs: 0 = ::ffff:10.9.0.1 (iWARP, eth7)"));
  CHECK_FALSE(has(text, "cma_roce_mode"));
}

TEST_CASE("of very many GIDs a few are named and the rest counted") {
  const Host host;
  for (int i = 2; i < 120; ++i) host.add_gid("rxe0", i, kGid10_9, "RoCE v2");
  CHECK(has(text_of(host.examined()), "5 = ::ffff:10.9.0.1 (RoCE v2, eth7) and 114 more\n"));
}

TEST_CASE("a device file that is not in /dev: a container or unit without it") {
  {
    const Host host;
    host.folder.remove("dev/infiniband/uverbs0");
    check_problem(host.examined(), {"FAIL /dev/infiniband/uverbs0: missing, though the kernel has rxe0",
                                    "docker run --device /dev/infiniband/uverbs0 --device /dev/infiniband/rdma_cm",
                                    "DeviceAllow=char-infiniband_verbs rw"});
  }
  {
    const Host host;
    host.folder.remove("dev/infiniband/rdma_cm");
    check_problem(host.examined(), {"FAIL /dev/infiniband/rdma_cm: missing, though the kernel has", "docker run"});
  }
  // One device of several is all that a container may have been given.
  const Host host;
  host.add_device("rxe1", "uverbs1");
  host.folder.remove("dev/infiniband/uverbs1");
  check_problem(host.examined(), {"warn /dev/infiniband/uverbs1: missing, though the kernel has rxe1"});
}

TEST_CASE("a device file that is there and cannot be opened") {
  const Host host;
  host.folder.remove("dev/infiniband/uverbs0");
  host.folder.write("dev/infiniband/uverbs0/x", "");  // a folder: not even root can open it for writing
  check_problem(host.examined(), {"FAIL /dev/infiniband/uverbs0: uid", "may not open it", "udev rule"});
}

TEST_CASE("kernel modules that are missing are named") {
  {
    const Host host;
    host.folder.remove("sys/class/infiniband_verbs");
    check_problem(host.examined(), {"FAIL rxe0: programs cannot reach it", "modprobe ib_uverbs"});
  }
  const Host host;
  host.folder.remove("sys/class/misc");
  host.folder.remove("dev/infiniband/rdma_cm");
  check_problem(host.examined(), {"FAIL /dev/infiniband/rdma_cm: the kernel's module", "modprobe rdma_ucm"});
}

TEST_CASE("a library without the device's driver") {
  Host host;
  host.library.devices = 0;
  check_problem(host.examined(), {"FAIL libibverbs: has no driver", "apt-get install ibverbs-providers"});
}

TEST_CASE("fork safety: one way is enough, none is a warning") {
  Host host;
  host.library.fork = VerbsLibrary::Fork::kEnabled;
  CHECK(has(text_of(host.examined()), "ok   fork safety: pinned pages are kept from children"));
  host.library.fork = VerbsLibrary::Fork::kDisabled;
  check_problem(host.examined(), {"warn fork safety: ", "5.12"});
}

TEST_CASE("memlock: the arithmetic, and how far the limit reaches") {
  Host host;
  host.limit.bytes = 256 * kMiB - 1;
  check_problem(host.examined(), {"warn memlock: 268435455", "256MiB may be needed: 256 sessions (max_sessions) x 1MiB",
                                  "there is room for 255 sessions", "systemd: LimitMEMLOCK=infinity",
                                  "docker: --ulimit memlock=-1 --cap-add IPC_LOCK"});
  host.limit.bytes = 64 * 1024;
  check_problem(host.examined(), {"FAIL memlock: 64KiB may be pinned", "not one session has room"});
  host.limit.by_capability = true;
  CHECK(has(text_of(host.examined()), "ok   memlock: no limit holds (CAP_IPC_LOCK); 256MiB may be needed"));
  host.limit = {};
  CHECK(has(text_of(host.examined()), "ok   memlock: no limit; 256MiB"));
}

TEST_CASE("the capability counts only where it is the host's") {
  const Host host;
  CHECK_FALSE(pin_limit(host.files()).by_capability);
  host.folder.write("proc/self/status", "Name:\tegret\nCapPrm:\t0000000000000000\nCapEff:\t0000000000004000");
  CHECK(pin_limit(host.files()).by_capability);
  host.folder.write("proc/self/uid_map", "         0     100000      65536");
  CHECK_FALSE(pin_limit(host.files()).by_capability);
  host.folder.write("proc/self/uid_map", "         0          0 4294967295");
  host.folder.write("proc/self/status", "CapEff:\tffffffffffffbfff");
  CHECK_FALSE(pin_limit(host.files()).by_capability);
}

TEST_CASE("which card there is, what is known of it, and whether it can serve") {
  Host host;
  CHECK(has(text_of(host.examined()), "ok   rxe0: rxe: Soft-RoCE, of the kernel: for trying things out"));
  host.folder.write("sys/class/infiniband/rxe0/node_type", "1: CA");
  host.folder.remove("sys/class/infiniband/rxe0/parent");
  CHECK(has(text_of(host.examined()), "ok   rxe0: unknown driver: nothing is known of it => run egret-bench verbs"));
  host.folder.write("sys/class/infiniband/rxe0/node_type", "4: RNIC");
  check_problem(host.examined(),
                {"FAIL rxe0: rxe0 (siw) cannot serve: iWARP has no WRITE with immediate", "use another device"});
}

TEST_CASE("the network of a port: hints on its MTU and on the traffic class, where this side chooses it") {
  Host host;
  host.folder.write("sys/class/net/eth7/mtu", "1500");
  CHECK(has(text_of(host.examined()),
            "ok   rxe0 port 1 MTU: 1500 of eth7, so queue pairs have 1024 => a slot of 4KiB takes 4 packets"));
  host.folder.write("sys/class/net/eth7/mtu", "9000");
  CHECK(has(text_of(host.examined()), "ok   rxe0 port 1 MTU: 9000 of eth7, so queue pairs have 4096\n"));
  CHECK_FALSE(has(text_of(host.examined()), "traffic class"));
  host.needs.connects = true;
  CHECK(has(text_of(host.examined()),
            "ok   rxe0 port 1 traffic class: none is set, so packets travel in the fabric's default class => if"));
  host.folder.write("sys/kernel/config/rdma_cm/rxe0/ports/1/default_roce_tos", "96");
  CHECK(has(text_of(host.examined()),
            "ok   rxe0 port 1 traffic class: this host's default (cma_roce_tos), tos 96 (DSCP 24)\n"));
  host.needs.tos = 104;
  CHECK(has(text_of(host.examined()), "ok   rxe0 port 1 traffic class: tos 104 (DSCP 26)\n"));
}

TEST_CASE("InfiniBand without IPoIB has no addresses that rdma: could name") {
  Host host;
  host.folder.write("sys/class/infiniband/rxe0/ports/1/link_layer", "InfiniBand");
  check_problem(host.examined(), {"warn rxe0 port 1 IPoIB: no interface", "modprobe ib_ipoib"});
  host.folder.write("sys/class/net/ib0/pkey", "0x8001");
  host.folder.write("sys/class/net/ib0/device/infiniband/rxe0/node_type", "1: CA");
  CHECK(has(text_of(host.examined()), "ok   rxe0 port 1 IPoIB: ib0 (pkey 0x8001)\n"));
}

TEST_CASE("memlock counts the queues of each session") {
  Host host;
  host.needs.queue_bytes = queue_bytes(128, 64, 1);
  CHECK(host.needs.queue_bytes == (64 + 1 + 24 + 12 + 3) * 1024);  // sends, receives, completions, frames, whole pages
  CHECK(queue_bytes(512, 256, 4) > 3 * queue_bytes(512, 256, 1));
  check_problem(host.examined(),
                {"warn memlock: 256MiB may be pinned, 282MiB may be needed: 256 sessions (max_sessions) x 1MiB",
                 ", and 104KiB of queues for each", "there is room for 232 sessions"});
}

TEST_CASE("huge pages: wanted only where a session's memories fill some") {
  Host host;
  host.needs.session_bytes = 32 * kMiB;
  host.needs.sessions = 4;
  check_problem(host.examined(), {"warn huge pages: 0 of 2MiB are free, 68 may be used", "sysctl vm.nr_hugepages=68"});
  host.folder.write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "68");
  CHECK(has(text_of(host.examined()), "ok   huge pages: 68 of 2MiB are free, 68 may be used"));
}

TEST_CASE("where no rdma: address is configured all of it is information") {
  Host host;
  host.needs.is_configured = false;
  host.library.devices = 0;
  host.limit.bytes = 0;
  host.folder.remove("dev/infiniband");
  host.folder.write("sys/class/infiniband/rxe0/ports/1/state", "1: DOWN");
  const Findings findings = host.examined();
  const std::string text = text_of(findings);
  CHECK_FALSE(has(text, "FAIL"));
  CHECK_FALSE(has(text, "warn"));
  CHECK_FALSE(has(text, "=>"));
  CHECK(has(text, "ok   rxe0 port 1: state 1: DOWN, Ethernet (RoCE) (not needed: no rdma: address is configured)"));
  host.folder.remove("sys/class/infiniband");
  CHECK(text_of(host.examined()) == "ok   RDMA: no device; none is needed, as no rdma: address is configured\n");
}

TEST_CASE("a shm address: the folder must be there, and nothing of another kind in the socket's place") {
  const Folder folder;
  const auto examined = [](const std::string& address) {
    Findings findings;
    check_listen(address, findings);
    return findings;
  };
  CHECK(text_of(examined("shm:" + folder.path + "/a.sock")) ==
        "ok   listen shm:" + folder.path + "/a.sock: can be made\n");
  CHECK_FALSE(fs::exists(folder.path + "/a.sock"));
  check_problem(examined("shm:" + folder.path + "/none/a.sock"),
                {"FAIL listen shm:", "/none: No such file", "install -d"});
  folder.write("file", "x");
  check_problem(examined("shm:" + folder.path + "/file/a.sock"), {"FAIL", "/file"});
  check_problem(examined("shm:" + folder.path + "/file"), {"FAIL", "there is a file, and it is no socket"});
  check_problem(examined("shm:" + folder.path + "/" + std::string(100, 'x')),
                {"FAIL", "a socket's path holds 107 bytes"});
  CHECK(has(text_of(examined("shm:@egret-doctor-" + std::to_string(::getpid()))), "can be made"));
}

TEST_CASE("a shm address that somebody listens on is a warning; one that nobody does any more is fine") {
  const Folder folder;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder.path + "/a.sock";
  std::copy(path.begin(), path.end(), address.sun_path);
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(socket.get(), 1) == 0);
  Findings findings;
  check_listen("shm:" + path, findings);
  check_problem(findings, {"warn listen shm:", "somebody listens there", "already running"});
  socket.reset();
  Findings later;
  check_listen("shm:" + path, later);
  CHECK(has(text_of(later), "can be made"));
}

TEST_CASE("an rdma: address that makes no sense, or cannot be had, fails") {
  Findings findings;
  check_listen("rdma:[::1", findings);
  check_problem(findings, {"FAIL listen rdma:[::1: expected rdma:HOST:PORT"});
  Findings unknown;
  check_listen("rdma:no.such.host.invalid:11311", unknown);
  check_problem(unknown, {"FAIL listen rdma:no.such.host.invalid:11311: cannot resolve"});
  Findings elsewhere;
  check_listen("rdma:192.0.2.1:11311", elsewhere);  // of no host, by RFC 5737
  check_problem(elsewhere, {"FAIL listen rdma:192.0.2.1:11311: "});
}
