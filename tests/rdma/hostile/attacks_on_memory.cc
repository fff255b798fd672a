// Forbidden accesses to memory: without the right, past the end, with another session's keys, with guessed keys,
// atomics, invalidation. The device must refuse each with an access error, which ends the attacker's session.
#include "attacks.h"

namespace egret::hostile {

namespace {

constexpr uint32_t kWord = 8;

Work reading(const RemoteMemory& from, uint64_t offset, uint32_t length) {
  return {.opcode = IBV_WR_RDMA_READ, .at = Connection::kIn, .length = length, .remote = from, .offset = offset};
}
Work writing(const RemoteMemory& to, uint64_t offset, uint32_t length) {
  return {.opcode = IBV_WR_RDMA_WRITE, .at = Connection::kOut, .length = length, .remote = to, .offset = offset};
}

// Each verb in a session of its own, since each costs its session.
void refuse_each(const sockaddr_in& target, const std::string& what, const std::vector<Work (*)(Session&)>& works) {
  for (size_t i = 0; i < works.size(); ++i) {
    Session session(target);
    expect_refused(session, works[i](session), what + ", variant " + std::to_string(i));
  }
}

void read_requests(const sockaddr_in& target) {
  refuse_each(target, "READ of request memory",
              {[](Session& s) { return reading(s.requests(), 0, kWord); },
               [](Session& s) { return reading(s.requests(), s.layout().request_offset(1, 1), 4096); }});
}

void write_responses(const sockaddr_in& target) {
  refuse_each(target, "WRITE to response memory",
              {[](Session& s) { return writing(s.responses(), 0, kWord); },
               [](Session& s) {
                 Work work = writing(s.responses(), s.layout().response_offset(2, 1), 4096);
                 work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
                 return work;
               }});
}

void past_the_ends(const sockaddr_in& target) {
  refuse_each(target, "READ outside of response memory",
              {[](Session& s) { return reading(s.responses(), s.responses().bytes, kWord); },
               [](Session& s) { return reading(s.responses(), s.responses().bytes - 4, kWord); },
               [](Session& s) { return reading(s.responses(), s.responses().bytes - 4096, 16384); },
               [](Session& s) { return reading(s.responses(), ~uint64_t{0} - 3, kWord); },
               [](Session& s) { return reading(s.responses(), ~s.responses().address - 3, kWord); },
               [](Session& s) { return reading(s.responses(), ~s.responses().address + 1, kWord); }});
  refuse_each(target, "WRITE outside of request memory",
              {[](Session& s) { return writing(s.requests(), s.requests().bytes, kWord); },
               [](Session& s) { return writing(s.requests(), s.requests().bytes - 4, kWord); },
               [](Session& s) { return writing(s.requests(), s.requests().bytes - 4096, 65536); },
               [](Session& s) { return writing(s.requests(), ~uint64_t{0} - 3, kWord); },
               [](Session& s) { return writing(s.requests(), ~s.requests().address - 3, kWord); }});
}

// A peer that holds two sessions uses the keys of one in the other.
void anothers_keys(const sockaddr_in& target) {
  Session victim(target);
  const auto with = [&](RemoteMemory at, uint32_t key) {
    at.key = key;
    return at;
  };
  std::vector<RemoteMemory> reads, writes;
  {
    const Session peer(target);
    reads = {victim.responses(), with(peer.responses(), victim.responses().key), victim.requests()};
    writes = {victim.requests(), with(peer.requests(), victim.requests().key), victim.responses()};
  }
  for (size_t i = 0; i < reads.size(); ++i) {
    Session reader(target);
    expect_refused(reader, reading(reads[i], 0, kWord), "READ with another's key " + std::to_string(i));
    Session writer(target);
    expect_refused(writer, writing(writes[i], 0, kWord), "WRITE with another's key " + std::to_string(i));
  }
  Session mixed(target);
  expect_refused(mixed, reading(with(victim.responses(), mixed.responses().key), 0, kWord), "another's address");
  expect_served(victim, "victim");
}

void guessed_keys(const sockaddr_in& target) {
  Session victim(target);
  for (const uint32_t step : {1u, 0xffu, 0x100u, 0x101u, 0x102u, 0u - 0x100u, 0x8000'0000u}) {
    Session session(target);
    RemoteMemory guessed = session.responses();
    guessed.key += step;
    // A guess may hit our own other memory, which may not be read either.
    expect_refused(session, reading(guessed, 0, kWord), "READ with key + " + std::to_string(step));
  }
  expect_served(victim, "victim");
}

void atomics(const sockaddr_in& target) {
  for (const ibv_wr_opcode opcode : {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP}) {
    for (const bool on_requests : {true, false}) {
      Session session(target);
      const RemoteMemory& memory = on_requests ? session.requests() : session.responses();
      expect_refused(session, {.opcode = opcode, .at = Connection::kIn, .length = kWord, .remote = memory},
                     "an atomic");
    }
  }
}

// A SEND may ask the receiver's device to invalidate a key.
void invalidations(const sockaddr_in& target) {
  Session victim(target);
  for (const bool of_victim : {true, false}) {
    for (const bool of_requests : {true, false}) {
      Session session(target);
      Session& whose = of_victim ? victim : session;
      const uint32_t key = of_requests ? whose.requests().key : whose.responses().key;
      const size_t at = session.connection().put(framed(encode(wire::Ready{})));
      (void)session.connection().run({.opcode = IBV_WR_SEND_WITH_INV, .at = at, .length = 24, .immediate = key});
      expect_ended(session.connection(), "a SEND that invalidates a key");
    }
  }
  expect_served(victim, "victim");
}

constexpr Attack kAttacks[] = {
    {"read-requests", read_requests}, {"write-responses", write_responses}, {"past-the-ends", past_the_ends},
    {"anothers-keys", anothers_keys}, {"guessed-keys", guessed_keys},       {"atomics", atomics},
    {"invalidations", invalidations},
};

}  // namespace

std::span<const Attack> attacks_on_memory() {
  return kAttacks;
}

}  // namespace egret::hostile
