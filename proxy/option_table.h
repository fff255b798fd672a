// The proxy's options, as a table: --help, the check of a YAML file, the reference and the man page come from it. What the
// values mean on this machine: proxy/config.h.
#pragma once

#include <span>

#include "base/options/options.h"

namespace egret::proxy {

std::span<const base::OptionRow> option_table();

}  // namespace egret::proxy
