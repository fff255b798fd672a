// The server's half of address.h, apart from the client's: a client library holds no server.
#include <algorithm>

#include "transport/address.h"
#include "transport/local/local.h"
#include "transport/mixed/mixed_listener.h"
#include "transport/shm.h"
#include "transport/tcp/tcp.h"
#include "transport/verbs.h"

namespace egret::transport {

base::Expected<std::unique_ptr<Listener>> listen(const std::string& address, const ListenOptions& options) {
  if (const auto each = alternatives_of(address); each.size() > 1) {
    return listen_at_both(each[0], each[1], options, listen);
  }
  const std::string_view transport = transport_of(address);
  const std::string rest = address.substr(std::min(address.size(), transport.size() + 1));
  if (address.starts_with("rdma:")) return verbs_listen(rest, options);
  if (address.starts_with("tcp:")) return tcp_listen(rest, options);
  if (address.starts_with("local:")) return local_listen(rest);
  if (address.starts_with("shm:")) return shm_listen(rest, options);
  return check_address(address);  // whose error says which forms there are
}

base::Expected<std::unique_ptr<PollGroup>> make_poll_group() {
  return verbs_poll_group();
}

}  // namespace egret::transport
