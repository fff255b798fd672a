#include "bench_cache/crew.h"

#include <utility>

namespace egret::bench_cache {

using base::Expected;
using base::Status;

Expected<Crew> Crew::connect(const bench::Address& address) {
  Crew crew;
  for (uint32_t i = 0; i < kClients; ++i) {
    auto client = ItemClient::connect(address);
    if (!client) return client.status();
    crew.clients_.push_back(std::move(client.value()));
  }
  return crew;
}

Status Crew::run(uint64_t batches, const Compose& compose, const Judged& judged, const std::atomic<bool>& stop) {
  Answers answers;
  uint64_t sent = 0;
  for (uint64_t done = 0; done < batches; ++done) {
    for (; sent < batches && sent < done + kClients && !stop.load(); ++sent) {
      ItemClient& client = clients_[sent % kClients];
      compose(sent, client);
      if (Status good = client.send(); !good) return good;
    }
    if (sent == done) break;  // stopped, and all is judged
    if (Status good = clients_[done % kClients].receive(answers); !good) return good;
    judged(done, answers);
  }
  return Status::ok();
}

}  // namespace egret::bench_cache
