// Which card a host has, by made-up trees of files as the kernel shows them, and what is known of it.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <doctest/doctest.h>

#include "temporary_folder.h"
#include "transport/device/cards.h"

using namespace egret::transport::device;
namespace fs = std::filesystem;

namespace {

struct Host {
  void add(const std::string& device, const std::string& driver, const std::string& node_type = "1: CA") const {
    write(device, "node_type", node_type);
    if (driver.empty()) return;
    fs::create_directories(folder_of(device) / "device");
    fs::create_directories(fs::path(folder.path) / "drivers" / driver);
    fs::create_symlink(fs::path(folder.path) / "drivers" / driver, folder_of(device) / "device/driver");
  }
  void write(const std::string& device, const std::string& name, const std::string& line) const {
    fs::create_directories((folder_of(device) / name).parent_path());
    std::ofstream(folder_of(device) / name) << line << "\n";
  }
  fs::path folder_of(const std::string& device) const { return fs::path(folder.path) / "class/infiniband" / device; }
  std::string driver_of(const std::string& device) const {
    const Card* const card = card_of(folder.path, device);
    return card == nullptr ? "none" : std::string(card->driver);
  }
  std::string refused(const std::string& device, bool is_iwarp = false) const {
    return refusal(folder.path, device, is_iwarp).value_or("");
  }
  egret::TemporaryFolder folder;
};

}  // namespace

TEST_CASE("a card is known by the driver of its PCI function") {
  const Host host;
  host.add("mlx5_0", "mlx5_core");
  host.add("rocep1s0", "ice");
  host.add("bnxt_re0", "bnxt_en");
  host.add("strange0", "strange");
  CHECK(host.driver_of("mlx5_0") == "mlx5");
  CHECK(host.driver_of("rocep1s0") == "irdma");
  CHECK(host.driver_of("bnxt_re0") == "bnxt_re");
  CHECK(host.driver_of("strange0") == "none");
  host.write("mlx5_0", "device/vendor", "0x15b3");
  host.write("mlx5_0", "device/device", "0x1017");
  CHECK(identity_of(host.folder.path, "mlx5_0") == "mlx5, 0x15b3:0x1017");
  CHECK(identity_of(host.folder.path, "strange0") == "strange");
  CHECK(host.refused("strange0") == "");
}

TEST_CASE("emulated devices are not the card that they stand on") {
  const Host host;
  host.add("rxe0", "mlx5_core");
  host.write("rxe0", "parent", "eth0");
  host.add("siw0", "mlx5_core", "4: RNIC");
  host.add("siw1", "", "4: RNIC");
  CHECK(host.driver_of("rxe0") == "rxe");
  CHECK(host.driver_of("siw0") == "siw");
  CHECK(host.driver_of("siw1") == "siw");
  CHECK(host.refused("rxe0") == "");
}

TEST_CASE("what cannot serve is refused in one line that says why") {
  const Host host;
  host.add("siw0", "", "4: RNIC");
  host.add("efa0", "efa", "6: unspecified");
  host.add("irdma0", "ice", "4: RNIC");
  host.add("irdma1", "ice");
  host.add("erdma0", "erdma", "4: RNIC");
  CHECK(host.refused("siw0").starts_with("siw0 (siw) cannot serve: iWARP has no WRITE with immediate"));
  CHECK(host.refused("efa0").find("no reliable-connected queue pairs") != std::string::npos);
  CHECK(host.refused("irdma0").find("it is in iWARP mode") != std::string::npos);
  CHECK(host.refused("irdma1") == "");
  CHECK(host.refused("erdma0", true) == "");
  CHECK(host.refused("unknown0", true).find("iWARP has no WRITE with immediate") != std::string::npos);
  for (const char* device : {"siw0", "efa0", "irdma0"}) CHECK(host.refused(device).find('\n') == std::string::npos);
}

TEST_CASE("the table in docs/operate/rdma.md is that of the code") {
  std::ifstream file(EGRET_SOURCE "/docs/operate/rdma.md");
  std::stringstream page;
  page << file.rdbuf();
  // What is to stand there is said where it does not.
  INFO(cards_markdown());
  CHECK(page.str().find("<!-- cards -->\n" + cards_markdown() + "<!-- /cards -->") != std::string::npos);
}
