// Faults that no plan of the interposer makes, since a node has to stop at a certain step: played by all nodes of a run, in
// phases. What is played is what the unit tests play over the memory fabric.
//
//   kMovedKey     one server core, two clients. Client 0 begins a get and READs the key's first place; client 1 has the
//                 server move the key there from its second; then client 0 goes on.
//   kDiesHolding  two connecting processes. Client 1 puts a key; when its first atomic is done, its process kills itself.
//                 Then client 0 puts, GETs and erases that key, and another one.
#pragma once

#include <string>

#include "life.h"

namespace egret::bench_paradigms {

// This node's part. What came of it, as JSON members. `marker`: see Life.
std::string play(Scene scene, Seat& seat, const std::string& marker);

}  // namespace egret::bench_paradigms
