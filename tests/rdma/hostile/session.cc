#include "session.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

#include <unistd.h>

#include "base/random.h"
#include "op/hash.h"
#include "wire/bytes.h"
#include "wire/codec.h"

namespace egret::hostile {

namespace {
constexpr double kPatience = 10;
constexpr uint32_t kWindow = 8;
}  // namespace

std::unique_ptr<Connection> connect(const sockaddr_in& target, const ConnectWords& words, size_t receives,
                                    const sockaddr_in* source) {
  return std::make_unique<Connection>(target, bytes_of(words), receives, source);
}

AcceptWords accept_words(const Connection& connection) {
  AcceptWords words;
  require(connection.accept_data().size() >= sizeof words, "accepted without a word");
  std::memcpy(&words, connection.accept_data().data(), sizeof words);
  return words;
}

std::vector<std::byte> framed(const std::vector<std::byte>& frame, const std::vector<std::byte>& attachment) {
  const uint32_t head[2] = {static_cast<uint32_t>(frame.size()), static_cast<uint32_t>(attachment.size())};
  std::vector<std::byte> message = bytes_of(head);
  message.insert(message.end(), frame.begin(), frame.end());
  message.insert(message.end(), attachment.begin(), attachment.end());
  return message;
}

ibv_wc_status say(Connection& connection, const std::vector<std::byte>& message) {
  const size_t at = connection.put(message);
  return connection.run({.opcode = IBV_WR_SEND, .at = at, .length = static_cast<uint32_t>(message.size())});
}

wire::Hello new_hello() {
  wire::Hello hello{.window = kWindow};
  hello.worker_id = egret::base::random_u64();
  return hello;
}

base::Secret known_secret() {
  const char* const secret = std::getenv("EGRET_HOSTILE_SECRET");
  return secret == nullptr ? base::Secret() : base::Secret(secret);
}

wire::FrameType Message::type() const {
  wire::FrameType type{};
  std::string error;
  require(decode_prefix(frame, type, error), error);
  return type;
}

Message hear(Connection& connection) {
  const auto message = connection.receive(kPatience);
  require(message.has_value() && message->size() > 8, "no answer");
  uint32_t head[2];
  std::memcpy(head, message->data(), sizeof head);
  require(message->size() == sizeof head + head[0] + head[1], "an answer whose lengths are wrong");
  const auto frame = message->begin() + sizeof head;
  return {{frame, frame + head[0]}, {frame + head[0], message->end()}};
}

void introduce(Connection& connection, const base::Secret& secret) {
  wire::Hello hello = new_hello();
  if (secret.is_set()) {
    hello.features = wire::kAuthenticate;
    hello.nonce = wire::fresh_nonce();
  }
  const std::vector<std::byte> frame = encode(hello);
  require(say(connection, framed(frame)) == IBV_WC_SUCCESS, "the hello is not taken");
  if (!secret.is_set()) return;
  const Message challenge = hear(connection);
  require(challenge.type() == wire::FrameType::kChallenge, "the answer to the hello is no challenge");
  wire::Transcript transcript;
  transcript.add(frame);
  transcript.add(challenge.frame);
  const wire::ClientProof proof{transcript.client_proof(secret)};
  require(say(connection, framed(encode(proof))) == IBV_WC_SUCCESS, "the proof is not taken");
}

Granted hear_grant(Connection& connection) {
  const Message message = hear(connection);
  const wire::FrameType type = message.type();
  if (wire::Refusal refusal; type == wire::FrameType::kRefusal && decode(message.frame, refusal)) {
    throw Failure("refused: " + refusal.reason);
  }
  Granted granted;
  require(type == wire::FrameType::kGrant && decode(message.frame, granted.grant), "the answer is no grant");
  require(message.attachment.size() == 2 * sizeof(RemoteMemory), "a grant without its region");
  const std::byte* const keys = message.attachment.data();
  std::memcpy(&granted.requests, keys, sizeof(RemoteMemory));
  std::memcpy(&granted.responses, keys + sizeof(RemoteMemory), sizeof(RemoteMemory));
  return granted;
}

Session::Session(const sockaddr_in& target, std::optional<RemoteMemory> replies, size_t receives)
    : connection_(connect(target, {}, receives)) {
  require(connection_->is_open(), "rejected");
  require(say(*connection_, framed(encode(new_hello()))) == IBV_WC_SUCCESS, "the hello is not taken");
  granted_ = hear_grant(*connection_);
  require(layout().response_bytes() <= Connection::kRepliesBytes, "a region too large for this test");
  next_seq_.assign(layout().lanes, 1);
  if (!replies) replies = this->replies();
  if (replies->bytes == 0) return;
  require(say(*connection_, framed(encode(wire::Ready{}), bytes_of(*replies))) == IBV_WC_SUCCESS, "ready is not taken");
}

RemoteMemory Session::replies() {
  return {.address = reinterpret_cast<uint64_t>(connection_->memory() + Connection::kReplies),
          .bytes = layout().response_bytes(),
          .key = connection_->key()};
}

uint32_t Session::lane_of(std::string_view key) const {
  return op::partition_of(op::hash_key(key, granted_.grant.hash_seed), layout().lanes);
}

std::vector<std::byte> Session::message(uint64_t seq, const std::vector<std::byte>& body, uint16_t ops,
                                        std::optional<uint32_t> length) const {
  std::vector<std::byte> whole(sizeof(wire::RequestHeader) + body.size());
  std::ranges::copy(body, whole.begin() + sizeof(wire::RequestHeader));
  wire::RequestHeader header{.seq = seq,
                             .checksum = 0,
                             .length = length.value_or(static_cast<uint32_t>(body.size())),
                             .op_count = ops,
                             .flags = 0};
  std::memcpy(whole.data(), &header, sizeof header);
  header.checksum = wire::message_checksum(whole.data() + wire::kRequestChecked, whole.size() - wire::kRequestChecked,
                                           granted_.grant.nonce, seq);
  std::memcpy(whole.data(), &header, sizeof header);
  return whole;
}

std::vector<std::byte> Session::message(uint64_t seq, const op::Op& op) const {
  std::vector<std::byte> body(wire::encoded_op_size(op));
  wire::encode_op(body.data(), op);
  return message(seq, body, 1);
}

void Session::write(uint32_t lane, uint64_t seq, const std::vector<std::byte>& message, size_t at) {
  connection_->post({.opcode = IBV_WR_RDMA_WRITE,
                     .at = connection_->put(message, at),
                     .length = static_cast<uint32_t>(message.size()),
                     .remote = requests(),
                     .offset = layout().request_offset(lane, seq)});
}

void Session::want(uint32_t lane, uint64_t seq) {
  connection_->post({.opcode = IBV_WR_RDMA_WRITE,
                     .at = connection_->put(bytes_of(seq), Connection::kOutBytes - sizeof seq),
                     .length = sizeof seq,
                     .remote = requests(),
                     .offset = layout().want_offset(lane)});
  require(connection_->finish() == IBV_WC_SUCCESS, "want is refused");
}

bool Session::is_answered(uint32_t lane, uint64_t seq) {
  const auto slot = static_cast<uint32_t>(layout().response_slot_size);
  const ibv_wc_status status = connection_->run({.opcode = IBV_WR_RDMA_READ,
                                                 .at = Connection::kIn,
                                                 .length = slot,
                                                 .remote = responses(),
                                                 .offset = layout().response_offset(lane, seq)});
  require(status == IBV_WC_SUCCESS, std::string("a fetch failed: ") + ::ibv_wc_status_str(status));
  const std::byte* const response = connection_->memory() + Connection::kIn;
  wire::ResponseHeader header{};
  std::memcpy(&header, response, sizeof header);
  if (header.asleep == seq) {
    ring(lane);
    require(connection_->finish() == IBV_WC_SUCCESS, "a ring failed");
  }
  if (header.seq != seq || header.length > slot - sizeof header) return false;
  const size_t checked = sizeof header - wire::kResponseChecked + header.length;
  const uint64_t sum = wire::message_checksum(response + wire::kResponseChecked, checked, granted_.grant.nonce, seq);
  return header.checksum == sum;
}

op::ResultCode Session::call(uint32_t lane, const op::Op& op) {
  const uint64_t seq = next_seq_.at(lane)++;
  write(lane, seq, message(seq, op));
  require(connection_->finish() == IBV_WC_SUCCESS, "a request is refused");
  for (const double end = now_seconds() + kPatience; !is_answered(lane, seq);) {
    require(now_seconds() < end, "no answer");
  }
  const std::byte* const response = connection_->memory() + Connection::kIn;
  wire::ResponseHeader header{};
  std::memcpy(&header, response, sizeof header);
  op::Result result;
  require(wire::ResultReader(response + sizeof header, header.length).next(result), "a malformed result");
  value_ = result.value;
  return result.code;
}

op::Op set(std::string_view key, std::string_view value) {
  op::Op made;
  made.code = op::OpCode::kSet;
  made.key = key;
  made.value = value;
  return made;
}

op::Op get(std::string_view key) {
  op::Op made;
  made.code = op::OpCode::kGet;
  made.key = key;
  return made;
}

}  // namespace egret::hostile
