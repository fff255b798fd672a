// Opens non-blocking listening stream sockets, for the proxy's clients and for the admin addresses.
// Cold path; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/status.h"
#include "base/unique_fd.h"

namespace egret::base {

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// In each of these functions an error message begins with `what`: "cannot listen on tcp:localhost:1".

// All addresses of `host` ("*": every address of this machine, of both families).
Expected<AddressList> resolve_to_listen(const std::string& host, uint16_t port, const std::string& what);

// Listens at one of them. An IPv6 socket does not accept IPv4. If the result is not open, errno says why.
UniqueFd listen_at(const addrinfo& at, int backlog);
// Whether that errno only means that this machine lacks the address: "localhost" may have an IPv6 address on a machine
// without IPv6. Listening at another address of the name is then enough.
bool is_absent(int error);

// Tries to connect to a Unix address. 0: somebody listens there for sockets of that type; else errno of connect().
int connect_errno(const sockaddr_un& at, socklen_t length, int type);

// Whether something exists at a Unix address where we want to listen. Removes a socket that nobody listens on any more
// (its owner was killed). If connecting fails otherwise than by "refused", somebody is there: the backlog is full, the
// socket has another type, or we have no permission.
enum class Occupant : uint8_t { kNothing, kListener, kOther };
Occupant remove_stale_socket(const sockaddr_un& at, socklen_t length, int type);

// Listens at that path, after remove_stale_socket(). Without `mode` the umask decides who may connect. Where the kernel
// can refuse descriptors that peers send, it does (local/peer_socket.h).
Expected<UniqueFd> listen_at_path(const std::string& path, std::optional<mode_t> mode, int backlog,
                                  const std::string& what);

}  // namespace egret::base
