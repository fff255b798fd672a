// Results that are nothing but their code.
#pragma once

#include "op/op.h"

namespace egret::store {

inline op::Result answer(op::ResultCode code) {
  op::Result result;
  result.code = code;
  return result;
}

}  // namespace egret::store
