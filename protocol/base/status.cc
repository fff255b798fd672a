#include "base/status.h"

#include <system_error>

namespace egret::base {

Status Status::system_error(const std::string& what, int error_number) {
  return error(what + ": " + std::generic_category().message(error_number));
}

}  // namespace egret::base
