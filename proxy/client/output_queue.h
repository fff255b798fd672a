// The output of one client. Small answers are written one after the other into blocks from the worker's pool. A value
// over kMaxCopied is sent from where it lies (response slots, the store of this process, or other memory); at the end of
// the pass the bytes in slots that the socket has not taken are copied. One send passes as much as the socket takes. Text
// between two values that may stay where they are gets a small block: a client that does not read shall hold little memory.
//
//   reserve/commit, append ─▶ blocks ─┐
//                                     ├─▶ send ─▶ socket
//   lend ─▶ the value in its place ───┘     └ not sent by the end of the pass: keep_lent() copies what lies in slots
//
// Thread: the worker's. Memory: charged to the connection (ConnectionMemory); a large value's to large_value_memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "op/loan.h"
#include "proxy/client/client_socket.h"
#include "proxy/replies/connection_memory.h"
#include "rpc/slot_hold.h"

namespace egret::proxy {

// Blocks of one size that connections borrow while they have bytes to hold. Keeps up to kKept unused ones.
class BlockPool {
 public:
  explicit BlockPool(size_t block_size) : block_size_(block_size) {}
  size_t block_size() const { return block_size_; }
  std::unique_ptr<char[]> take();
  void give(std::unique_ptr<char[]> block);

 private:
  // 4 MiB, as 50 clients that read 50 values of 1 KiB each have in use in one pass. Blocks that are freed go back to the
  // system, and cost page faults in the next pass.
  static constexpr size_t kKept = 256;
  const size_t block_size_;
  std::vector<std::unique_ptr<char[]>> free_;
};

// Keeps the bytes of a lent value in their place.
struct Lender {
  rpc::SlotHold hold{};              // response slots with pieces of the value, held until the end of the pass
  std::unique_ptr<char[]> memory{};  // if not null: memory with the first piece, which may stay there
  op::LoanRef loan{};                // if not empty: all of the value, which may stay in its store
  bool is_large = false;             // charged to large_value_memory instead of the connection's memory

  bool may_stay(std::string_view piece) const { return loan || (memory != nullptr && piece.data() == memory.get()); }
};

class OutputQueue {
 public:
  OutputQueue(BlockPool& pool, ConnectionMemory& memory) : pool_(pool), memory_(memory) {}
  ~OutputQueue();

  static constexpr size_t kBlockSize = 16 * 1024;  // of the pool's blocks
  // A value up to this size is copied into a block, with the bytes before and after it.
  static constexpr size_t kMaxCopied = kBlockSize - 1024;

  // Room for `length` (at most kBlockSize) contiguous bytes. Then call commit() with the number of bytes written.
  char* reserve(size_t length);
  void commit(size_t length);
  // Copies bytes of any length.
  void append(std::string_view bytes);
  // Appends the pieces of one value without copying; they stay in place until they are sent, or until keep_lent().
  void lend(std::span<const std::string_view> pieces, Lender lender);
  // The end of the pass: copies unsent lent pieces, except those that may stay, and releases the slots.
  void keep_lent();

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // Whether the next part of an answer that is written in parts may be written: the client has read most of the output,
  // and the connection has memory for more. Always true if there is no output, so that every answer makes progress.
  bool may_run_ahead() const { return size_ == 0 || (size_ <= kMaxAhead && memory_.may_keep(kMaxAhead)); }
  static constexpr size_t kMaxAhead = 64 * 1024;
  // Whether a value of so many bytes may be lent by its store: what one connection keeps there has a limit.
  // `besides`: what it has borrowed elsewhere. One that has borrowed nothing always may.
  bool may_borrow(uint64_t bytes, uint64_t besides = 0) const {
    const uint64_t held = borrowed_ + besides;
    return held == 0 || held + bytes <= kMaxBorrowed;
  }
  static constexpr uint64_t kMaxBorrowed = 8 << 20;
  // Whether a large value is not sent completely.
  bool has_large() const { return large_ > 0; }

  // Sends what the socket takes. kDone: everything is sent; kWantRead, kWantWrite: call again then; kFailed.
  Io send(ClientSocket& socket);

 private:
  struct Piece {
    std::unique_ptr<char[]> bytes;  // null: the bytes are lent
    const char* data;
    size_t capacity;
    size_t begin;  // first byte not sent yet
    size_t end;
    bool is_lent;        // its lender is in lenders_
    bool may_stay;       // Lender::may_stay()
    bool is_last_lent;   // the lender's last piece: the lender is removed with it
    size_t charged = 0;  // bytes charged to memory_
  };
  void add_block(size_t least);
  void charge(Piece& piece, size_t bytes);
  void copy(Piece& piece);
  void drop(size_t length);
  void release(Piece& piece);
  bool has_pieces() const { return first_ < pieces_.size(); }
  std::span<Piece> pieces() { return std::span(pieces_).subspan(first_); }
  void remove_first();
  void remove_last();

  BlockPool& pool_;
  ConnectionMemory& memory_;
  // From first_ on. No deque, which holds half a KiB for an idle connection.
  std::vector<Piece> pieces_;
  size_t first_ = 0;
  std::vector<Lender> lenders_;  // in the order of their pieces, from first_lender_ on
  size_t first_lender_ = 0;
  bool has_borrowed_ = false;  // there are lent pieces that must be copied at the end of the pass
  size_t large_ = 0;           // how many of lenders_ are large
  uint64_t borrowed_ = 0;      // bytes of the values in lenders_ that are loans
  size_t size_ = 0;
};

}  // namespace egret::proxy
