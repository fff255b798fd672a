// The pages that RDMA devices have mapped into this process: queues, and registers by which it rings them.
//
// Thread: that of a forked child, the only one. Allocates nothing.
#pragma once

namespace egret::client {

// Puts empty pages without access in their place: what was mapped holds the device's file open, and with it all that a parent has
// made there. The addresses stay taken, as whoever mapped them may unmap them later.
void cover_device_pages();

}  // namespace egret::client
