// The options of both daemons that say how they prove to each other over TCP who they are: session_tls_certificate,
// session_tls_key, session_tls_ca, session_tls_names.
#pragma once

#include <memory>

#include "base/options/options.h"
#include "base/status.h"
#include "tls/mutual.h"

namespace egret::tls {

// Reads and loads the files. Null: TLS is off, since no certificate is named. An error names the option.
base::Expected<std::shared_ptr<const Mutual>> read_options(const base::Options& options);

}  // namespace egret::tls
