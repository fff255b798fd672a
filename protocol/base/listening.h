// Sockets that listen for streams, non-blocking: opened for the proxy's clients and for the admin addresses.
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

// In each of these `what` leads the message of a failure: "cannot listen on tcp:localhost:1".

// Every address that `host` stands for ("*": every address of this machine, of both families).
Expected<AddressList> resolve_to_listen(const std::string& host, uint16_t port, const std::string& what);

// At one of them; IPv6 sockets take no IPv4. Not open: errno says why.
UniqueFd listen_at(const addrinfo& at, int backlog);
// Whether that errno only says that this machine has no such address: "localhost" has an IPv6 address where there is no
// IPv6, and one that works is enough.
bool is_absent(int error);

// Whether somebody listens for sockets of that type at a Unix address: 0, or errno of connecting.
int knock(const sockaddr_un& at, socklen_t length, int type);

// What is in the way of a socket of that type at a Unix address. A socket that nobody listens on any more (its owner
// was killed) is removed; anything but "refused" means that somebody is there: a full backlog, a socket of another
// type, no right to know.
enum class InTheWay : uint8_t { kNothing, kListener, kOther };
InTheWay clear_the_way(const sockaddr_un& at, socklen_t length, int type);

// At that path, which fits a sockaddr_un; see clear_the_way(). Without `mode` the umask decides who may connect.
Expected<UniqueFd> listen_at_path(const std::string& path, std::optional<mode_t> mode, int backlog,
                                  const std::string& what);

}  // namespace egret::base
