#include "bench_paradigms/fabric/verbs_pair.h"

#include <algorithm>
#include <cstring>

#include <arpa/inet.h>

#include "bench_verbs/pairs/by_hand.h"

namespace egret::bench_paradigms {

using base::Status;

namespace {

constexpr size_t kPolled = 32;

uint64_t to_wr_id(Verb verb, uint64_t tag) {
  return static_cast<uint64_t>(verb) << kTagBits | tag;
}

Completion to_completion(const ibv_wc& wc) {
  Completion done;
  done.tag = wc.wr_id & kMostTag;
  done.verb = static_cast<Verb>(wc.wr_id >> kTagBits);
  done.is_ok = wc.status == IBV_WC_SUCCESS;
  done.pair = wc.qp_num;
  if (!done.is_ok) return done;
  done.bytes = wc.byte_len;
  done.has_immediate = (wc.wc_flags & IBV_WC_WITH_IMM) != 0;
  if (done.has_immediate) done.immediate = ntohl(wc.imm_data);
  if (done.verb == Verb::kReceive) done.from_pair = wc.src_qp;
  return done;
}

ibv_wr_opcode opcode_of(const Work& work) {
  switch (work.verb) {
    case Verb::kWrite:
      return work.has_immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    case Verb::kRead:
      return IBV_WR_RDMA_READ;
    case Verb::kCompareSwap:
      return IBV_WR_ATOMIC_CMP_AND_SWP;
    case Verb::kFetchAdd:
      return IBV_WR_ATOMIC_FETCH_AND_ADD;
    case Verb::kSend:
    case Verb::kReceive:
      break;
  }
  return work.has_immediate ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
}

unsigned flags_of(const Work& work) {
  unsigned flags = 0;
  if (work.is_signalled) flags |= IBV_SEND_SIGNALED;
  if (work.is_inline) flags |= IBV_SEND_INLINE;
  if (work.is_fenced) flags |= IBV_SEND_FENCE;
  return flags;
}

}  // namespace

ibv_ah_attr way_to(const Route& route, const NodeAddress& peer) {
  ibv_ah_attr way = route.way.ah_attr;
  static_assert(sizeof way.grh.dgid.raw == sizeof peer.gid);
  std::memcpy(way.grh.dgid.raw, peer.gid.data(), peer.gid.size());
  way.dlid = peer.lid;
  return way;
}

uint32_t VerbsQueue::poll(std::span<Completion> out) {
  ibv_wc completions[kPolled];
  const int found =
      ibv_poll_cq(handle_.get(), static_cast<int>(std::min(out.size(), std::size(completions))), completions);
  for (int i = 0; i < found; ++i) out[static_cast<size_t>(i)] = to_completion(completions[i]);
  return static_cast<uint32_t>(std::max(found, 0));
}

VerbsPair::VerbsPair(bench_verbs::Handle handle, const PairSpec& spec, const Route& route, const Capabilities& all,
                     VerbCounts& counts)
    : Pair(spec.type, counts, all),
      route_(route),
      reads_(std::min(std::max(spec.read_depth, 1u), all.read_depth)),
      peer_reads_(all.read_depth),
      requests_(spec.sends),
      pieces_(spec.sends),
      receive_requests_(spec.receives),
      receive_pieces_(spec.receives),
      handle_(std::move(handle)) {
  number_ = handle_->qp_num;
}

// Whatever is under way ends before the memory that it is about goes.
VerbsPair::~VerbsPair() {
  break_down();
}

void VerbsPair::break_down() {
  ibv_qp_attr error{};
  error.qp_state = IBV_QPS_ERR;
  (void)ibv_modify_qp(handle_.get(), &error, IBV_QP_STATE);
}

Status VerbsPair::join(const NodeAddress& peer, uint32_t peer_pair) {
  int error = 0;
  if (type() == PairType::kUd) {
    error = bench_verbs::start_datagrams(handle_.get());
  } else {
    ibv_qp_attr way = route_.way;
    way.ah_attr = way_to(route_, peer);
    error = bench_verbs::connect_pair(handle_.get(), way, peer_pair, reads_, peer_reads_);
  }
  return error == 0 ? Status::ok() : Status::system_error("cannot connect a queue pair", error);
}

bool VerbsPair::fill(const Work& work, ibv_send_wr& request, ibv_sge& piece) const {
  const bool needs_memory = work.bytes > 0 && !work.is_inline;
  if (work.verb == Verb::kReceive || (needs_memory && work.memory == nullptr)) return false;
  request = {};
  request.wr_id = to_wr_id(work.verb, work.tag);
  request.opcode = opcode_of(work);
  request.send_flags = flags_of(work);
  request.sg_list = &piece;
  request.num_sge = work.bytes > 0 ? 1 : 0;
  if (work.has_immediate) request.imm_data = htonl(work.immediate);
  piece = {reinterpret_cast<uint64_t>(work.local), work.bytes, needs_memory ? work.memory->local_key() : 0};
  if (type() == PairType::kUd) {
    if (work.way == nullptr) return false;
    request.wr.ud.ah = static_cast<const VerbsWay*>(work.way)->handle();
    request.wr.ud.remote_qpn = work.to_pair;
    request.wr.ud.remote_qkey = bench_verbs::kDatagramKey;
  } else if (work.verb == Verb::kCompareSwap || work.verb == Verb::kFetchAdd) {
    request.wr.atomic.remote_addr = work.remote_address;
    request.wr.atomic.rkey = work.remote_key;
    request.wr.atomic.compare_add = work.compare_or_add;
    request.wr.atomic.swap = work.swap;
  } else {
    request.wr.rdma.remote_addr = work.remote_address;
    request.wr.rdma.rkey = work.remote_key;
  }
  return true;
}

bool VerbsPair::do_post(std::span<const Work> works) {
  if (works.empty() || works.size() > requests_.size()) return false;
  for (size_t i = 0; i < works.size(); ++i) {
    if (!fill(works[i], requests_[i], pieces_[i])) return false;
    if (i > 0) requests_[i - 1].next = &requests_[i];
  }
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(handle_.get(), requests_.data(), &bad) == 0) return true;
  // A list of which the first ones have gone: nobody could tell which. The pair is given up.
  if (bad != requests_.data()) break_down();
  return false;
}

bool VerbsPair::do_post_receives(std::span<const Receive> receives) {
  if (receives.empty() || receives.size() > receive_requests_.size()) return false;
  for (size_t i = 0; i < receives.size(); ++i) {
    const Receive& place = receives[i];
    if (place.bytes > 0 && place.memory == nullptr) return false;
    receive_pieces_[i] = {reinterpret_cast<uint64_t>(place.local), place.bytes,
                          place.bytes > 0 ? place.memory->local_key() : 0};
    ibv_recv_wr& request = receive_requests_[i];
    request = {};
    request.wr_id = to_wr_id(Verb::kReceive, place.tag);
    request.sg_list = &receive_pieces_[i];
    request.num_sge = place.bytes > 0 ? 1 : 0;
    if (i > 0) receive_requests_[i - 1].next = &request;
  }
  ibv_recv_wr* bad = nullptr;
  if (ibv_post_recv(handle_.get(), receive_requests_.data(), &bad) == 0) return true;
  if (bad != receive_requests_.data()) break_down();
  return false;
}

}  // namespace egret::bench_paradigms
