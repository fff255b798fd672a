// What a client's commands amount to: takes the parser's events of one connection and makes ops, places in the answers,
// uploads and fan-outs of them.
//
//   bytes ─▶ ClientParser ─▶ event ─▶ act: route ─▶ lane.append ─▶ Reply in the queue
//                                    │ no credit, a key that must wait, a barrier: the command is held and asked again
//                                    later
//
// Thread: the worker's. It holds no bytes: what feed() did not consume is the front of the input of the next call.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "memcache/admin.h"
#include "memcache/client_parser.h"
#include "memcache/translate.h"
#include "pool/pool.h"
#include "proxy/client/output_queue.h"
#include "proxy/commands/dump.h"
#include "proxy/commands/fan_out.h"
#include "proxy/commands/value_upload.h"
#include "proxy/replies/reply.h"
#include "proxy/report/stats_report.h"

namespace egret::proxy {

// Called when a held command may go on: feed() should be called again, soon, but not from within this call.
class DispatchObserver {
 public:
  virtual void on_resumable() = 0;
  // The client watches from now on (WatchStream bits). False: there are too many that do.
  virtual bool on_watch(uint16_t streams) = 0;

 protected:
  ~DispatchObserver() = default;
};

class Dispatcher final : private rpc::CreditWaiter, private FanOutOwner, private DumpOwner {
 public:
  // `config`: its worker's, which replaces it at a reload.
  Dispatcher(const std::shared_ptr<const Config>& config, const memcache::Limits& limits, pool::Pool& router,
             ReplyQueue& replies, OutputQueue& output, const StatsSource& stats, WorkerStats& counters,
             ByteBudget& collected_values, uint32_t& next_upload_id, DispatchObserver& observer);
  ~Dispatcher();

  // Acts on as much of the input as it can; returns how many bytes it is done with.
  size_t feed(std::string_view input);
  // Commands wait inside (for credit, an order, room in the output): input should not be read meanwhile.
  bool is_blocked() const { return held_ || waiting_for_room_ || fan_out_ != nullptr || dump_ != nullptr; }
  // The client said goodbye or must go: close when everything is answered and sent.
  bool is_closing() const { return closing_; }
  bool was_told_to_close() const { return told_to_close_; }
  // A large value is being received.
  bool is_in_value() const { return upload_ != nullptr; }
  // What it comes to if the client stands between two commands, so that another process may go on with it.
  std::optional<memcache::Standing> standing() const;
  void resume_as(const memcache::Standing& standing) { parser_.resume(standing); }
  // Nothing is under way.
  bool is_idle() const { return replies_.empty() && fan_out_ == nullptr && dump_ == nullptr; }

  static constexpr size_t kMaxPlaces = 1024;        // unanswered places of one connection
  static constexpr size_t kMaxOutput = 256 * 1024;  // bytes that wait for the client to read them

 private:
  bool act();
  bool counted(bool done) const;
  bool on_key();
  bool on_command();
  bool on_store_command();
  bool send_whole_value();
  bool on_value_begin();
  bool refuse_too_large();
  bool on_value_part();
  bool on_value_end();
  // dispatcher_control.cc
  bool on_control();
  // What a barrier says when backends failed it; empty for kOk.
  static std::string_view failure_line(op::ResultCode code);
  void answer_version();
  void answer_packet(memcache::binary::Status status, std::string_view body);
  void refuse(memcache::binary::Status status);
  void authenticate();
  void on_sasl();
  bool judge(bool known);
  // dispatcher_admin.cc
  bool on_admin(const memcache::AdminRequest& request);
  bool is_pipelined(const memcache::AdminRequest& request) const;
  void answer_line(std::string_view line);
  void begin_dump(const memcache::AdminRequest& request);
  void on_dump_text(std::string_view text) override;
  void on_dump_over() override;
  bool ask_all(op::AdminVerb verb, uint64_t number);
  void on_admin_done(op::ResultCode failure);
  std::string_view begin_watch(uint16_t streams);
  std::string refresh_certificates();
  void shut_down(const memcache::AdminRequest& request);
  bool on_flush();
  bool on_stats();
  void answer_report(std::string_view text);
  std::string report_on(const FanOut& fan_out);
  bool start_fan_out(const op::Op& op);
  void on_fan_out(const FanOut& fan_out) override;
  bool append(const pool::Route& target, const op::Op& op, Reply* reply);
  bool commit_upload();
  void want_to_know(op::Op& op) const;
  Reply* new_reply(uint16_t options);
  void start_upload(const pool::Route& target, const op::Op& op);
  void answer(op::ResultCode code);
  bool hold_for_credit(rpc::ClientSession& session);
  void on_credit() override;
  void rebase(const char* base);

  const std::shared_ptr<const Config>& config_;
  memcache::ClientParser parser_;
  pool::Pool& router_;
  ReplyQueue& replies_;
  OutputQueue& output_;
  const StatsSource& stats_;
  WorkerStats& counters_;
  ByteBudget& collected_values_;
  uint32_t& next_upload_id_;
  DispatchObserver& observer_;

  memcache::Command command_;
  memcache::Step step_{};
  bool held_ = false;                // step_ and command_ wait to be acted on again
  const char* held_base_ = nullptr;  // where the input lay that command_ views
  bool waiting_for_room_ = false;
  bool closing_ = false;
  bool told_to_close_ = false;                    // by quit
  bool sasl_started_ = false;                     // an empty first message was answered
  uint32_t command_number_ = 1;                   // of the retrieval being read; never 0
  rpc::ClientSession* credit_session_ = nullptr;  // where on_credit() is awaited
  ValueUpload* upload_ = nullptr;
  // What the command of upload_ asked, and was noted of it: its views die before the value's end.
  memcache::Question upload_question_;
  std::unique_ptr<Observed> upload_observed_;
  FanOut* fan_out_ = nullptr;
  Dump* dump_ = nullptr;
  bool watching_ = false;                                              // what the client still says is of no interest
  memcache::StatsTopic stats_topic_ = memcache::StatsTopic::kGeneral;  // of the fan-out under way
  op::AdminVerb admin_verb_ = op::AdminVerb::kMemoryLimit;             // likewise
};

}  // namespace egret::proxy
