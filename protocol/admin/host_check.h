// Which `Host` headers the admin address serves.
//
// DNS rebinding: a web page on evil.example can have its own name resolved to our address, and then its scripts may
// read what our server answers. The browser still sends `Host: evil.example`. So a request is served only if its Host
// is one that nobody but the operator can have chosen:
//
//   an IP address │ localhost │ a name in `admin_hosts` │ the name in `admin`   ─▶ served
//   any other name                                                             ─▶ refused (403)
//
// Any IP address will do, not only ours: a page that was opened by an address cannot be rebound, and behind published
// ports of containers the client's address for us is not the one that we are bound to. A request without the header
// (HTTP/1.0) is served: browsers always send it.
//
// Thread: that of the server.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace egret::admin {

class HostCheck {
 public:
  // In place of those that were allowed before.
  void allow(std::vector<std::string> names);
  // `header`: "HOST" or "HOST:PORT", from a client; letters of either case.
  bool passes(std::string_view header) const;

 private:
  std::vector<std::string> names_;  // in lower case
};

// Whether it can be an entry of `admin_hosts`: letters, digits, '-', '_' and '.', no port.
base::Status check_host_name(std::string_view name);

}  // namespace egret::admin
