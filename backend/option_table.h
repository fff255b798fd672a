// The backend's options, as a table: --help, the check of a YAML file, the reference and the man page come from it. What the
// values mean on this machine: backend/config.h.
#pragma once

#include <span>

#include "base/options/options.h"

namespace egret::backend {

std::span<const base::OptionRow> option_table();

}  // namespace egret::backend
