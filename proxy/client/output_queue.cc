#include "proxy/client/output_queue.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace egret::proxy {

namespace {
constexpr size_t kMaxVectors = 64;    // pieces in one send
constexpr size_t kKeptPieces = 16;    // the memory of a row of so many pieces is reused
constexpr size_t kSmallBlock = 1024;  // bytes: the longest head and more
}  // namespace

std::unique_ptr<char[]> BlockPool::take() {
  if (free_.empty()) return std::make_unique_for_overwrite<char[]>(block_size_);
  auto block = std::move(free_.back());
  free_.pop_back();
  return block;
}

void BlockPool::give(std::unique_ptr<char[]> block) {
  if (free_.size() < kKept) free_.push_back(std::move(block));
}

OutputQueue::~OutputQueue() {
  for (Piece& piece : pieces()) release(piece);
}

char* OutputQueue::reserve(size_t length) {
  EGRET_DCHECK(length <= kBlockSize);
  if (!has_pieces() || pieces_.back().capacity - pieces_.back().end < length) add_block(length);
  return pieces_.back().bytes.get() + pieces_.back().end;
}

void OutputQueue::add_block(size_t least) {
  const bool is_small = least <= kSmallBlock && has_pieces() && pieces_.back().may_stay;
  const size_t size = is_small ? kSmallBlock : kBlockSize;
  auto block = is_small ? std::make_unique_for_overwrite<char[]>(size) : pool_.take();
  const char* data = block.get();
  pieces_.push_back({std::move(block), data, size, 0, 0, false, false, false});
  charge(pieces_.back(), size);
}

void OutputQueue::commit(size_t length) {
  Piece& last = pieces_.back();
  last.end += length;
  size_ += length;
  if (length > 0 || last.begin < last.end) return;
  release(last);  // nothing was written: an idle connection holds no block
  remove_last();
}

void OutputQueue::append(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!has_pieces() || pieces_.back().capacity <= pieces_.back().end) add_block(bytes.size());
    Piece& last = pieces_.back();
    const size_t part = std::min(bytes.size(), last.capacity - last.end);
    std::memcpy(last.bytes.get() + last.end, bytes.data(), part);
    last.end += part;
    size_ += part;
    bytes.remove_prefix(part);
  }
}

void OutputQueue::lend(std::span<const std::string_view> pieces, Lender lender) {
  size_t length = 0;
  for (const std::string_view piece : pieces) {
    if (piece.empty()) continue;
    const bool may_stay = lender.may_stay(piece);
    pieces_.push_back({nullptr, piece.data(), piece.size(), 0, piece.size(), true, may_stay, false});
    if (!lender.is_large && !lender.loan) charge(pieces_.back(), piece.size());
    length += piece.size();
    has_borrowed_ |= !may_stay;
  }
  if (length == 0) return;
  pieces_.back().is_last_lent = true;
  large_ += lender.is_large ? 1 : 0;
  borrowed_ += lender.loan ? lender.loan->length() : 0;
  lenders_.push_back(std::move(lender));
  size_ += length;
}

void OutputQueue::keep_lent() {
  if (!std::exchange(has_borrowed_, false)) return;
  for (Piece& piece : pieces()) {
    if (piece.is_lent && !piece.may_stay && piece.bytes == nullptr) copy(piece);
  }
  for (size_t i = first_lender_; i < lenders_.size(); ++i) lenders_[i].hold.release();
}

// Lent bytes are charged when they are lent, although only the end of the pass shows whether they must be copied.
void OutputQueue::charge(Piece& piece, size_t bytes) {
  piece.charged = bytes;
  memory_.charge(bytes);
}

void OutputQueue::copy(Piece& piece) {
  const size_t left = piece.end - piece.begin;
  piece.bytes = std::make_unique_for_overwrite<char[]>(left);
  std::memcpy(piece.bytes.get(), piece.data + piece.begin, left);
  piece.data = piece.bytes.get();
  piece.begin = 0;
  piece.end = piece.capacity = left;
}

Io OutputQueue::send(ClientSocket& socket) {
  while (size_ > 0) {
    std::array<iovec, kMaxVectors> vectors;
    size_t count = 0;
    for (const Piece& piece : pieces()) {
      if (count == kMaxVectors) break;
      if (piece.begin == piece.end) continue;
      vectors[count++] = {const_cast<char*>(piece.data) + piece.begin, piece.end - piece.begin};
    }
    const ClientSocket::Transfer sent = socket.send({vectors.data(), count});
    drop(sent.bytes);
    if (sent.io != Io::kDone) return sent.io;
  }
  return Io::kDone;
}

void OutputQueue::drop(size_t length) {
  size_ -= length;
  while (has_pieces()) {
    Piece& first = pieces_[first_];
    const size_t part = std::min(length, first.end - first.begin);
    first.begin += part;
    length -= part;
    if (first.begin < first.end) return;
    release(first);
    remove_first();
  }
}

// What was sent is cleared when nothing is left, or when it is most of a long row: so each piece is moved once at most.
void OutputQueue::remove_first() {
  if (++first_ == pieces_.size()) {
    pieces_.clear();
    if (pieces_.capacity() > kKeptPieces) pieces_.shrink_to_fit();
    first_ = 0;
  } else if (first_ >= kKeptPieces && first_ * 2 >= pieces_.size()) {
    pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<ptrdiff_t>(first_));
    first_ = 0;
  }
}

void OutputQueue::remove_last() {
  pieces_.pop_back();
  if (has_pieces()) return;
  pieces_.clear();
  first_ = 0;
}

void OutputQueue::release(Piece& piece) {
  if (piece.charged > 0) memory_.refund(piece.charged);
  if (!piece.is_lent && piece.capacity == kBlockSize) pool_.give(std::move(piece.bytes));
  piece.bytes.reset();
  if (!piece.is_last_lent) return;
  const Lender done = std::exchange(lenders_[first_lender_], Lender{});
  large_ -= done.is_large ? 1 : 0;
  borrowed_ -= done.loan ? done.loan->length() : 0;
  if (++first_lender_ < lenders_.size() && (first_lender_ < kKeptPieces || first_lender_ * 2 < lenders_.size())) return;
  lenders_.erase(lenders_.begin(), lenders_.begin() + static_cast<ptrdiff_t>(first_lender_));
  first_lender_ = 0;
  if (lenders_.empty() && lenders_.capacity() > kKeptPieces) lenders_.shrink_to_fit();
}

}  // namespace egret::proxy
