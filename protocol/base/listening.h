// Sockets that listen for streams, non-blocking: opened for the proxy's clients and for the admin addresses.
// Cold path; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <netdb.h>
#include <sys/stat.h>

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

// At that path, which fits a sockaddr_un. A socket that nobody listens on any more is replaced; one in use, or another
// kind of file, is not. Without `mode` the umask decides who may connect.
Expected<UniqueFd> listen_at_path(const std::string& path, std::optional<mode_t> mode, int backlog,
                                  const std::string& what);

}  // namespace egret::base
