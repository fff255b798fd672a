// A socket that the program has connected to a proxy. What the program sends over it is served in this process, by slots.
//
// The descriptor is the program's own, and the kernel's connection to the proxy stays open behind it: it answers whatever is asked
// of the kernel (options, names), and carries the commands that slots do not know. BytesEngine sets these *aside*:
//
//   kSlots ─ a command is set aside ─▶ kAside: its bytes over the connection ─ its answer has ended ─▶ kSlots
//      └ one that never ends (SASL, watch, quit, …) ─▶ kConnection: everything goes over it, for good
//   kDead: the proxy is gone, or this is a forked child: as a connection that was reset
//   kClosed: the program has closed it, while other threads wait for answers by slots: they still get these
//
// What the program shuts for sending is shut when all that it sent before is done.
//
// Thread: any; in the engine's section while a call lasts, but not while it sleeps.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <poll.h>
#include <sys/types.h>

#include "client/preload/bytes_engine.h"
#include "client/preload/signals.h"
#include "client/preload/thread_engine.h"

namespace egret::preload {

class ServedSocket {
 public:
  // `fd`: the connection.
  ServedSocket(int fd, std::shared_ptr<ThreadEngine> thread);
  ~ServedSocket();
  ServedSocket(const ServedSocket&) = delete;
  ServedSocket& operator=(const ServedSocket&) = delete;

  // As send() and recv(), errno included.
  ssize_t send(std::string_view bytes, int flags);
  ssize_t recv(char* to, size_t room, int flags);

  // --- to wait for it, with others
  static constexpr short kReadable = POLLIN | POLLRDNORM, kWritable = POLLOUT | POLLWRNORM;
  // What there is of `events` now, of these, POLLERR, POLLHUP. ready(): without looking for more.
  short look(short events);
  short ready(short events);
  // Bytes that one recv() would receive now; < 0: as many as the connection has.
  ssize_t unread();
  // Polls for up to 50 us, without a system call: whether an answer that the program waits for has come.
  bool comes_soon();
  // What to wait for: the connection, and while `sleeper` is there, for an answer by slots (their fd may be negative). False: something
  // has come meanwhile. Each is followed by disarm(), when the wait is over.
  using Wait = std::array<pollfd, 3>;
  using Sleeper = std::unique_ptr<ThreadEngine::Sleeper>;
  bool arm(short events, Wait& wait, Sleeper& sleeper);
  void disarm(short events, const Wait& wait, Sleeper& sleeper);

  // The program uses the descriptor in a way that only the kernel can serve. Waits for what is under way, as long as an op
  // may take. True: the connection serves from here on. False: the connection is shut down, since answers that came by
  // slots cannot be put into it; this socket still gives them, and then the end.
  bool let_go();
  // As shutdown(). Sending after that fails with EPIPE, and is_shut_by_program() says that the caller must raise SIGPIPE.
  int shutdown(int how);
  bool is_shut_by_program() const { return is_shut_by_program_.load(std::memory_order_relaxed); }
  // Reads the descriptor's O_NONBLOCK again: the program may have changed it.
  void note_flags();
  // It is about to be closed: waits until what was sent is answered, but not beyond `until_ns`, nor while another thread waits for it.
  void finish(uint64_t until_ns);
  // Likewise, and then it is the program's no longer.
  void close(uint64_t until_ns);
  // Something has been thrown inside.
  void break_down() { thread_->break_down(); }
  std::string counts();

 private:
  enum class State : uint8_t { kSlots, kAside, kConnection, kDead, kClosed };
  // Why a wait ended.
  enum class Waited : uint8_t { kHasCome, kConnectionHas, kTimeIsOver, kInterrupted };

  using Section = ThreadEngine::Section;
  using Outside = ThreadEngine::Outside;

  bool is_lost() const { return thread_->is_lost(); }
  static ssize_t reset();
  bool is_blocking(int flags) const;
  bool is_by_slots() const { return state_ == State::kSlots || state_ == State::kClosed; }
  // Nothing is awaited, but a command that is not whole has begun to be read: the connection cannot take it over.
  bool is_amid_value() const {
    return state_ == State::kSlots && !engine_->is_awaited() && !engine_->is_over() && !engine_->can_leave();
  }
  ssize_t receive(char* to, size_t room, int flags);
  int go_on();
  void wait_for_answers(Section& section, uint64_t until_ns);
  void wait_for_room(Section& section);
  template <typename Done>
  Waited wait(Section& section, Done done, uint64_t until_ns, bool is_restarted);
  template <typename Done>
  Waited sleep_until(Section& section, Done done, uint64_t until_ns, Signals& signals);
  bool leave_to_connection();
  void begin_aside();
  bool look_for_a_while();
  bool pass_barrier();
  bool send_over_connection(std::string_view bytes);
  ssize_t recv_aside(char* to, size_t room, int flags);
  void note_aside(std::string_view bytes);
  bool is_closed_by_proxy() const;
  ssize_t recv_bare(Section& section, char* to, size_t room, int flags);
  bool wait_for_connection(Section& section);
  uint64_t receive_until_ns() const;
  bool has_come();
  bool is_there() const;
  Waited wait_for_progress(Section& section);
  ssize_t hand_out(char* to, size_t room, int flags);

  const int fd_;
  const std::shared_ptr<ThreadEngine> thread_;
  std::unique_ptr<BytesEngine> engine_;  // these: the engine's section
  State state_ = State::kSlots;
  std::string seen_;        // of the answer to a command that went aside: its last line, or packet's head
  uint64_t body_left_ = 0;  // binary: of the packet
  bool is_last_packet_ = false;
  bool has_just_sent_ = false;                   // nothing was received since the last send()
  std::atomic<bool> is_nonblocking_{false};      // O_NONBLOCK, as note_flags() last read it
  uint64_t went_aside_ = 0;                      // commands
  int is_to_be_shut_ = kNotShut;                 // as shutdown() is asked
  bool is_shut_ = false;                         // nothing more can be sent, after shutdown() or let_go()
  bool is_closed_ = false;                       // by the program, while other threads use it
  bool is_shut_to_read_ = false;                 // nothing more is waited for, after shutdown()
  std::atomic<bool> is_shut_by_program_{false};  // by shutdown()
  // Threads that wait in the kernel for the connection, not for the engine: they began when no answer by slots was awaited. Such an
  // answer would not wake them, so while there is one the next command goes over the connection, with the half of it that was sent
  // before. Amid a long value, which only the slots can go on with, they look at times.
  uint32_t bare_waiters_ = 0;
  uint32_t waiters_ = 0;  // threads that wait for answers by slots

  static constexpr int kNotShut = -1;
};

}  // namespace egret::preload
