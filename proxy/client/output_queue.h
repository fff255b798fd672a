// Bytes on their way to one client. Small answers are written side by side into blocks from the worker's pool; a large
// value is sent from where it is, and only what the socket has not taken of it is copied. One send takes as much as the
// socket does. Thread: the worker's. Memory: bounded by whoever stops producing at size() (see Connection).
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

#include "proxy/client/client_socket.h"

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

class OutputQueue {
 public:
  explicit OutputQueue(BlockPool& pool) : pool_(pool) {}
  ~OutputQueue();

  static constexpr size_t kBlockSize = 16 * 1024;  // of the pool it is given

  // Room for `length` (at most kBlockSize) contiguous bytes; commit() says how many were written.
  char* reserve(size_t length);
  void commit(size_t length);
  // Any length; copied.
  void append(std::string_view bytes);
  // Not copied: to be sent, and what is left of them copied by keep_lent(), before they change or go.
  void lend(std::string_view bytes);
  void keep_lent();

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  // Sends what the socket takes at once. kDone: all of it; kWantRead, kWantWrite: the rest then; kFailed.
  Io send(ClientSocket& socket);

 private:
  struct Piece {
    std::unique_ptr<char[]> bytes;  // null: they are lent
    const char* data;
    size_t capacity;
    size_t begin;  // first byte not sent yet
    size_t end;
    bool pooled;
  };
  void drop(size_t length);
  void release(Piece& piece);

  BlockPool& pool_;
  std::deque<Piece> pieces_;
  size_t size_ = 0;
};

}  // namespace egret::proxy
