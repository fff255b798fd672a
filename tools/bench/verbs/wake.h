// How long a thread of this host takes to be woken that sleeps until a descriptor is readable: what a worker pays that does
// not poll, without the card's interrupt.
#pragma once

namespace egret::bench_verbs {

// Two threads wake each other in turn, for some 20 ms; the mean, in µs. 0: this host gives no eventfd.
double measure_wake_us();

}  // namespace egret::bench_verbs
