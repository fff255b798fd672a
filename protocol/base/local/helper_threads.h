// Whether this process lets its libraries start threads of their own: those that close what a peer chose (closer.h), and
// those that look up names. Daemons do; a library inside somebody else's program does not.
//
// Thread: any; to be set before there is anything to do for them.
#pragma once

namespace egret::base {

void allow_helper_threads(bool allowed);
bool may_start_helper_threads();

}  // namespace egret::base
