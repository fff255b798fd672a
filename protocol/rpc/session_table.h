// The options of sessions, by the names that they have in every program's table: window, request_slot_size,
// response_slot_size, idle_window, idle_slot_size, give_back_after, session_memory, secret_file, backend_uids, op_timeout,
// reconnect_max, qps_per_session, ack_timeout, tos, gid_index, pkey, spin, max_refetches, fetch_mode, fetch_min, fetch_max.
// The rows are the programs', since defaults and helps differ.
#pragma once

#include "base/options/options.h"
#include "base/status.h"
#include "rpc/session_options.h"

namespace egret::rpc {

inline constexpr int64_t kFetchStep = 64;  // bytes: fetch_min and fetch_max are multiples

// Does the checks that the table cannot express; reads the secret's file. `roomy`: there are CPUs enough to poll, if spin
// does not say how long. Address and worker_id stay as they are.
base::Status read_session_options(const base::Options& options, bool roomy, SessionOptions& session);

}  // namespace egret::rpc
