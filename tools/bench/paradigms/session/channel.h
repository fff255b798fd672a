// One host's way to another: frames, in order, over the control connection. Of one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "bench_paradigms/session/frame.h"
#include "bench_verbs/verbs.h"

namespace egret::bench_paradigms {

class Channel {
 public:
  virtual ~Channel() = default;
  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Waits until the other host has taken it.
  virtual base::Status send(FrameType type, std::string_view body) = 0;
  // The next frame, if there is one. Never waits. Fails when the other host is gone, or sends nonsense.
  virtual base::Expected<std::optional<Frame>> poll() = 0;
  // The other host has shown who it is: from now on large frames are taken.
  virtual void trust() = 0;
};

// Over a queue pair that rdma_cm connects. RECVs are always posted; what comes while a send waits is kept.
class VerbsChannel final : public Channel {
 public:
  // The connection is created, RECVs are posted; `connection` is still to be connected or accepted.
  static base::Expected<std::unique_ptr<VerbsChannel>> open(bench_verbs::CmId id);
  bench_verbs::Connection& connection() { return *connection_; }

  base::Status send(FrameType type, std::string_view body) override;
  base::Expected<std::optional<Frame>> poll() override;
  void trust() override { reader_.trust(); }

 private:
  static constexpr uint32_t kReceives = 32;
  static constexpr uint32_t kPartBytes = 8192;
  VerbsChannel() = default;
  base::Status send_part(std::string_view part);
  // Takes one completion, if there is one; `is_sent` becomes true if it was the send's.
  base::Expected<bool> take_completion(bool& is_sent);
  base::Status post_receive(uint32_t index);
  std::byte* part(uint32_t index) const { return parts_.data() + size_t{index} * kPartBytes; }

  bench_verbs::Domain domain_;  // first: what follows is in it
  bench_verbs::Memory parts_;   // of the RECVs; the last one is sent from
  std::unique_ptr<bench_verbs::Connection> connection_;
  FrameReader reader_;
};

}  // namespace egret::bench_paradigms
