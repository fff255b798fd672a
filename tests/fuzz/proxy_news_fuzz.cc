// A proxy that tells a program anything of its pool: frames whole, damaged and made up, in any order, over a real socket. What must hold:
// the program believes a pool only when it is whole and possible, and keeps it until the next such one; states are of members that the
// pool has; when the connection ends, the reason can be printed; no call waits.
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include "base/clock.h"
#include "client/engine/proxy_news.h"
#include "handshake_script.h"
#include "pool/member.h"
#include "pool/placement.h"
#include "transport/address.h"
#include "wire/pool_frames.h"

namespace {

using namespace egret;
using namespace egret::fuzz;
using client::ProxyNews;
using Heard = ProxyNews::Heard;

class FakeProxy {
 public:
  FakeProxy() : address("shm:@egret-fuzz-news-" + std::to_string(::getpid())) {
    std::signal(SIGPIPE, SIG_IGN);
    auto listening = transport::listen(address, {});
    EGRET_CHECK(listening.is_ok());
    listener_ = std::move(listening.value());
  }
  void accept() {
    auto accepted = listener_->accept();
    EGRET_CHECK(accepted.is_ok() && accepted.value() != nullptr);
    endpoint_ = std::move(accepted.value());
  }
  // One step of the script.
  void step(Input& input) {
    switch (input.take<uint8_t>() % 8) {
      case 0:
        return say(raw(input));
      case 1:
      case 2:
        version_ = input.take<uint8_t>() % 4;
        members_ = input.take<uint8_t>() % 5;
        next_ = 0;
        return say(
            encode(wire::PoolHead{.version = version_, .members = members_, .placement = input.take<uint8_t>()}));
      case 3:
      case 4:
      case 5:
        return say(encode(member(input)));
      case 6:
        return say(encode(wire::MemberStateFrame{version_, input.take<uint8_t>() % 6u,
                                                 static_cast<wire::MemberState>(input.take<uint8_t>() % 3)}));
      default:
        return say(damaged(encode(member(input)), input));
    }
  }

  const std::string address;

 private:
  // Mostly the next one of the pool that is being told.
  wire::MemberFrame member(Input& input) {
    static constexpr const char* kAddresses[] = {"tcp:h:1", "shm:/a",   "rdma:10.0.0.1:7", "shm:/b",
                                                 "",        "nonsense", "tcp:h:0"};
    const uint8_t how = input.take<uint8_t>();
    const uint32_t index = how % 8 == 0 ? input.take<uint8_t>() : next_++;
    const std::string name =
        how % 16 == 1 ? std::string(input.take<uint8_t>(), input.take<char>()) : std::to_string(index);
    return {.version = how % 8 == 2 ? input.take<uint64_t>() : version_,
            .tag = input.take<uint32_t>(),
            .index = index,
            .weight = how % 8 == 3 ? input.take<uint32_t>() : 1,
            .state = wire::MemberState::kServing,
            .ways = wire::kByRelay,
            .name = name,
            .address = kAddresses[how % 8 == 4 ? input.take<uint8_t>() % std::size(kAddresses) : index % 4]};
  }
  void say(const std::vector<std::byte>& frame) { (void)endpoint_->send_frame(frame, false); }

  std::unique_ptr<transport::Listener> listener_;
  std::unique_ptr<transport::ServerEndpoint> endpoint_;
  uint64_t version_ = 0;
  uint32_t members_ = 0, next_ = 0;
};

void check_believed(const ProxyNews::Pool& pool) {
  EGRET_CHECK(pool.head.version != 0 && pool.members.size() == pool.head.members);
  EGRET_CHECK(pool.head.placement <= static_cast<uint8_t>(pool::PlacementRule::kRendezvous));
  std::vector<pool::Member> members;
  for (const wire::MemberFrame& each : pool.members) {
    EGRET_CHECK(transport::check_address(each.address).is_ok());
    members.push_back({each.address, each.name, each.weight});
  }
  EGRET_CHECK(members.empty() || pool::check_members(members).is_ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static FakeProxy proxy;
  static base::ManualClock clock;
  Input input(data, size);
  ProxyNews news({proxy.address}, {}, clock, transport::connect);
  EGRET_CHECK(news.begin());
  proxy.accept();
  ProxyNews::Pool believed;
  for (bool has_ended = false; !input.at_end() && !has_ended;) {
    proxy.step(input);
    for (Heard heard = Heard::kPool; heard != Heard::kNothing && !has_ended;) {
      heard = news.hear();
      if (heard == Heard::kPool) {
        check_believed(news.pool());
        believed = news.pool();
      }
      if (heard == Heard::kState) EGRET_CHECK(news.changed_member() < news.pool().members.size());
      EGRET_CHECK(news.pool().head.version == believed.head.version &&
                  news.pool().members.size() == believed.members.size());
      has_ended = heard == Heard::kEnd;
    }
    if (has_ended) EGRET_CHECK(!news.why().empty() && is_printable(news.why()));
  }
  news.end(true);
  return 0;
}
