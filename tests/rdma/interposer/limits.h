// What the device is to give at most, and what it is to have besides:
//
//   EGRET_VERBS_LIMIT=rd_atomic:1,inline:0,queue:16,cqe:64,solicited:0
//     rd_atomic   READs under way on a queue pair, at either end        queue   places of a send or receive queue
//     inline      bytes of inline data                                 cqe     entries of a completion queue
//     solicited   0: the device tells of all completions or of none
//   EGRET_VERBS_HAVE=thread_domains,iwarp
//     thread_domains   domains for the queue pairs of one thread, as a provider has them: what is made in one is the device's own
//     iwarp            the device says that its transport is iWARP
//
// The device's attributes say so, and who asks for more gets EINVAL, as from a device. What cannot be read ends the process.
// Thread-safe.
#pragma once

#include <cstdint>

#include <infiniband/verbs.h>

namespace egret::interposer {

void limit_attributes(ibv_device_attr& attributes);
// Whether a queue pair may be as large as is asked for; counts those that may not.
bool is_within_limits(const ibv_qp_cap& asked);
// Of one that was made: devices give more inline data than was asked for.
void limit_made(ibv_qp_cap& made);
bool is_completion_queue_within_limits(int entries);
bool are_solicited_events_within_limits();

// Gives the context what it is to have.
void add_capabilities(verbs_context& extended, ibv_context& context);
// The domain that the provider knows, for one that was made here; else the same.
ibv_pd* behind_thread_domain(ibv_pd* domain);
// True: it was made here, and is gone.
bool free_thread_domain(ibv_pd* domain);

}  // namespace egret::interposer
