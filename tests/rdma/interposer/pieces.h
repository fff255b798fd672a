// Posts a list by the plan of tear_plan.h: verb by verb, some in pieces, some not at all. What the program has posted is
// counted as if it had gone out whole. Thread-safe.
//
//   post_by_plan ─▶ for each verb: QueuePair::hide gives it a mark ─▶ pieces with that mark ─▶ the provider
//   the provider's poll ─▶ QueuePair::show: pieces vanish, the last one becomes the verb's completion
#pragma once

#include <infiniband/verbs.h>

#include "queue_pairs.h"

namespace egret::interposer {

using PostSend = int (*)(ibv_qp* qp, ibv_send_wr* list, ibv_send_wr** bad);

int post_by_plan(QueuePair& pair, PostSend provider, ibv_send_wr* list, ibv_send_wr** bad);

}  // namespace egret::interposer
