// What the command line tells of a pool without asking a backend: --check-config explains it, --where KEY says where a key
// goes and why. Names of backends are resolved, for some seconds at most. Cold path; any thread.
#pragma once

#include <string>

#include "base/options/options.h"
#include "base/status.h"

namespace egret::proxy {

// The pool of a configuration that resolve_config() accepts: its rule, and a line for each backend with its share.
std::string explain_pool(const base::Options& options);

// Which backend owns `key` by this configuration, why, and who would own it without that one. An error: no client can
// ask for such a key.
base::Expected<std::string> explain_key(const base::Options& options, const std::string& key);

}  // namespace egret::proxy
