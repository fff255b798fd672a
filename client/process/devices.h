// What a forked child has inherited of RDMA devices: their files, and pages that they have mapped (queues, and registers by which queues
// are rung). Each holds the device's file open, and so all that the parent has made there: its peers would not see its death.
//
// Thread: the only one of a child that was just forked. Allocates no memory, since another thread of the parent may have held the
// allocator's lock.
#pragma once

namespace egret::client {

// Puts /dev/null in place of each such file, and pages without access in place of what is mapped: libibverbs and librdmacm, which know
// nothing of it, may close the numbers and unmap the addresses when the child ends. Of all devices, also those that the program uses by
// itself: librdmacm opens a device once for a process, so none is ours alone. Without /proc it can do nothing.
void let_go_of_devices();

}  // namespace egret::client
