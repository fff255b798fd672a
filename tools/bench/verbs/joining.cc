#include "bench_verbs/joining.h"

#include <algorithm>
#include <cstring>

namespace egret::bench_verbs {

using base::Expected;
using base::Status;

namespace {

constexpr double kPatienceS = 60;  // a device takes its time for thousands of queue pairs
constexpr size_t kNumbersOfMessage = sizeof(Message::text) / sizeof(uint32_t);

Status send_numbers(Station& station, PairSet& pairs, uint32_t count) {
  for (uint32_t from = 0; from < count; from += kNumbersOfMessage) {
    Message message;
    message.type = Message::Type::kNumbers;
    uint32_t numbers[kNumbersOfMessage];
    const auto some = std::min<uint32_t>(count - from, kNumbersOfMessage);
    for (uint32_t i = 0; i < some; ++i) numbers[i] = pairs.pair(from + i).handle->qp_num;
    message.set_text({reinterpret_cast<const char*>(numbers), some * sizeof numbers[0]});
    if (Status sent = station.send(message); !sent) return sent;
  }
  return Status::ok();
}

Expected<std::vector<uint32_t>> receive_numbers(Station& station, uint32_t count) {
  std::vector<uint32_t> all;
  while (all.size() < count) {
    auto message = station.receive(Message::Type::kNumbers, kPatienceS);
    if (!message) return message.status();
    const size_t some = message.value().length / sizeof(uint32_t);
    if (some == 0 || all.size() + some > count) return Status::error("the other side sends nonsense");
    const size_t at = all.size();
    all.resize(at + some);
    std::memcpy(&all[at], message.value().text, some * sizeof(uint32_t));
  }
  return all;
}

void tell_memory(Message& message, PairSet& pairs) {
  message.target_address = reinterpret_cast<uint64_t>(pairs.slots().target().data());
  message.target_key = pairs.slots().target().remote_key();
}

// Whether what the listening side asks for is within reason.
bool is_possible(const Making& making) {
  const Shape& shape = making.shape;
  constexpr uint32_t kMostBytes = 1 << 20;
  return making.set != Set::kConnected && static_cast<uint32_t>(making.set) < kSets && shape.queue_pairs >= 1 &&
         shape.queue_pairs <= kMaxPairsOfSet && making.threads >= 1 && making.threads <= shape.queue_pairs &&
         making.depth >= 1 && making.depth <= shape.depth && shape.depth <= kMostBytes &&
         shape.max_size <= kMostBytes && shape.guard <= kMostBytes &&
         (!making.is_datagrams() || (shape.lead >= kGrhBytes && shape.lead <= kMostBytes)) && making.read_depth >= 1;
}

// Asks the other side for its half; takes what it says about it.
Status ask(Station& station, const Making& making, Joined& joined) {
  Message message;
  message.type = Message::Type::kMake;
  message.making = making;
  if (Status sent = station.send(message); !sent) return sent;
  auto made = station.receive(Message::Type::kMade, kPatienceS);
  if (!made) return made.status();
  const Making& theirs = made.value().making;
  joined.pairs = std::min(joined.pairs, theirs.shape.queue_pairs);
  joined.read_depth = std::min(joined.read_depth, theirs.read_depth);
  if (made.value().length > 0) joined.why = "the client: " + made.value().words();
  if (joined.pairs == 0) return Status::ok();
  station.set(making.set)->slots().set_peer(made.value().target_address, made.value().target_key);
  return Status::ok();
}

Status join(Station& station, const Making& making, Joined& joined) {
  PairSet& pairs = *station.set(making.set);
  Message message;
  message.type = Message::Type::kJoin;
  message.making = making;
  message.making.shape.queue_pairs = joined.pairs;
  message.making.read_depth = joined.read_depth;
  tell_memory(message, pairs);
  if (Status sent = station.send(message); !sent) return sent;
  if (joined.pairs == 0) return Status::ok();
  if (Status sent = send_numbers(station, pairs, joined.pairs); !sent) return sent;
  auto answer = station.receive(Message::Type::kJoined, kPatienceS);
  if (!answer) return answer.status();
  if (answer.value().length > 0) {
    joined.why = "the client: " + answer.value().words();
    joined.pairs = 0;
    return Status::ok();
  }
  auto numbers = receive_numbers(station, joined.pairs);
  if (!numbers) return numbers.status();
  Status done = pairs.join(station.control().id(), numbers.value(), joined.read_depth);
  if (done) return Status::ok();
  joined.why = done.message();
  joined.pairs = 0;
  return Status::ok();
}

}  // namespace

Expected<Joined> make_sets(const std::vector<Station*>& stations, const Making& making) {
  Joined joined{.pairs = making.shape.queue_pairs, .read_depth = making.read_depth, .why = {}};
  for (Station* station : stations) {
    auto pairs = std::make_unique<PairSet>();
    Status made = pairs->make(station->control().id(), station->domain(), making);
    joined.pairs = std::min(joined.pairs, made ? pairs->size() : 0);
    joined.read_depth = std::min(joined.read_depth, most_reads(station->control().id()->verbs));
    if (!made || !pairs->shortfall().empty()) joined.why = made ? pairs->shortfall() : made.message();
    station->keep(std::move(pairs), making.set);
    if (joined.pairs == 0) return joined;
  }
  for (Station* station : stations) {
    if (Status done = ask(*station, making, joined); !done) return done;
  }
  for (Station* station : stations) {
    if (Status done = join(*station, making, joined); !done) return done;
  }
  return joined;
}

Status answer_make(Station& station, const Message& message) {
  const Making& making = message.making;
  if (!is_possible(making)) return Status::error("the other side asks for the impossible");
  auto pairs = std::make_unique<PairSet>();
  PairSet& own = *pairs;
  Status done = own.make(station.control().id(), station.domain(), making);
  Message answer;
  answer.type = Message::Type::kMade;
  answer.making = making;
  answer.making.shape.queue_pairs = done ? own.size() : 0;
  answer.making.read_depth = std::min(making.read_depth, most_reads(station.control().id()->verbs));
  if (!done || !own.shortfall().empty()) answer.set_text(done ? own.shortfall() : done.message());
  if (done) tell_memory(answer, own);
  if (done) station.keep(std::move(pairs), making.set);
  if (Status sent = station.send(answer); !sent) return sent;

  auto join = station.receive(Message::Type::kJoin, kPatienceS);
  if (!join) return join.status();
  const uint32_t count = join.value().making.shape.queue_pairs;
  if (count == 0) return Status::ok();
  if (!done || count > own.size()) return Status::error("the other side asks for the impossible");
  own.slots().set_peer(join.value().target_address, join.value().target_key);
  auto numbers = receive_numbers(station, count);
  if (!numbers) return numbers.status();
  done = own.join(station.control().id(), numbers.value(), join.value().making.read_depth);
  answer = {};
  answer.type = Message::Type::kJoined;
  if (!done) answer.set_text(done.message());
  if (Status sent = station.send(answer); !sent) return sent;
  return done ? send_numbers(station, own, count) : Status::ok();
}

}  // namespace egret::bench_verbs
