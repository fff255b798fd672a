// Where slot clients find the proxy: beside each address of memcached clients, at its twin (wire/slot_twins.h). One that
// listens at all addresses (tcp:*:11211) has the twins of 127.0.0.1 and [::1].
//
// Cold path; any thread.
#pragma once

#include <string>
#include <vector>

namespace egret::proxy {

// The twins of a listening socket, as transport/address.h has them without "shm:"; none of one that speaks TLS.
std::vector<std::string> slot_twins(int listening_fd, bool is_tls);

}  // namespace egret::proxy
