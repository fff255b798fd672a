// An egret-proxy of the build, that serves memcached clients at a Unix socket, and slots beside it.
#pragma once

#include <string>
#include <vector>

#include "daemon_process.h"

class ProxyProcess : public DaemonProcess {
 public:
  // `more`: options of egret-proxy.
  explicit ProxyProcess(const std::vector<std::string>& more, bool starts = true) : DaemonProcess("egret-proxy") {
    std::vector<std::string> options{"listen=" + address(), "admin=", "workers=2", "pin=off"};
    options.insert(options.end(), more.begin(), more.end());
    use(std::move(options), {"m", "m.slots"});
    if (starts) start();
  }

  // As the option `proxy` of libegret.
  std::string address() const { return "unix:" + folder() + "/m"; }
};
