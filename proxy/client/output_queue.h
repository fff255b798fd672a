// Bytes on their way to one client. Small answers are written side by side into blocks from the worker's pool; a value
// over kMaxCopied is sent from where it is (response slots, or the memory it was put together in), and only what the
// socket has not taken of it by the end of the pass is copied. One send takes as much as the socket does.
//
//   reserve/commit, append ─▶ blocks ─┐
//                                     ├─▶ send ─▶ socket
//   lend ─▶ where the value is ───────┘     └ what is left at the end of the pass: keep_lent() copies it
//
// Thread: the worker's. Memory: charged to the connection (ConnectionMemory); a large value's to large_value_memory.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

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
  static constexpr size_t kKept = 64;
  const size_t block_size_;
  std::vector<std::unique_ptr<char[]>> free_;
};

// Who keeps the bytes of a lent value where they are.
struct Lender {
  rpc::SlotHold hold;              // the slots in which pieces lie, until the end of the pass
  std::unique_ptr<char[]> memory;  // if not null, the first piece lies in it, and may stay there
  bool is_large = false;           // it counts against large_value_memory, not the connection's
};

class OutputQueue {
 public:
  OutputQueue(BlockPool& pool, ConnectionMemory& memory) : pool_(pool), memory_(memory) {}
  ~OutputQueue();

  static constexpr size_t kBlockSize = 16 * 1024;  // of the pool it is given
  // A value up to this size is copied into a block, with what stands before and behind it.
  static constexpr size_t kMaxCopied = kBlockSize - 1024;

  // Room for `length` (at most kBlockSize) contiguous bytes; commit() says how many were written.
  char* reserve(size_t length);
  void commit(size_t length);
  // Any length; copied.
  void append(std::string_view bytes);
  // Not copied: the pieces of one value, which stay where they are until they are sent, or until keep_lent().
  void lend(std::span<const std::string_view> pieces, Lender lender);
  // The end of the pass: copies what is left of lent pieces, but of those in their lender's memory; releases slots.
  void keep_lent();

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // A large value is not sent yet.
  bool has_large() const { return large_ > 0; }

  // Sends what the socket takes at once. kDone: all of it; kWantRead, kWantWrite: the rest then; kFailed.
  Io send(ClientSocket& socket);

 private:
  struct Piece {
    std::unique_ptr<char[]> bytes;  // null: they are lent
    const char* data;
    size_t capacity;
    size_t begin;  // first byte not sent yet
    size_t end;
    bool is_lent;        // its lender is in lenders_
    bool may_stay;       // it lies in its lender's memory
    bool is_last_lent;   // of its lender: with this piece the lender goes
    size_t charged = 0;  // to memory_
  };
  void charge(Piece& piece, size_t bytes);
  void copy(Piece& piece);
  void drop(size_t length);
  void release(Piece& piece);

  BlockPool& pool_;
  ConnectionMemory& memory_;
  std::deque<Piece> pieces_;
  std::vector<Lender> lenders_;  // in the order of their pieces; few
  bool has_borrowed_ = false;    // there are lent pieces that may not stay
  size_t large_ = 0;             // of lenders_
  size_t size_ = 0;
};

}  // namespace egret::proxy
