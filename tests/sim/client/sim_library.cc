#include "sim_library.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "client/process/fork.h"
#include "op/hash.h"

namespace egret::sim {

using client::Taken;

namespace {

// An endpoint of the network with descriptors that an epoll can wait for. They show what the network has when show() is called.
class RealDescriptors final : public transport::ClientEndpoint {
 public:
  RealDescriptors(std::string address, std::unique_ptr<transport::ClientEndpoint> inner)
      : address_(std::move(address)), inner_(std::move(inner)), control_(make()), data_(make()) {
    all().push_back(this);
  }
  ~RealDescriptors() override { std::erase(all(), this); }

  static base::Expected<std::unique_ptr<transport::ClientEndpoint>> connect(const std::string& address,
                                                                            const transport::ConnectOptions& options) {
    auto inner = Network::connect(address, options);
    if (!inner) return inner;
    return std::unique_ptr<transport::ClientEndpoint>(
        std::make_unique<RealDescriptors>(address, std::move(inner.value())));
  }

  // Of all endpoints of a client.
  static bool is_any_ready(const Network& network, const std::string& address) {
    return std::ranges::any_of(all(), [&](const RealDescriptors* each) {
      return each->address_ == address &&
             (network.is_ready(each->inner_->control_fd()) || network.is_ready(each->inner_->data_fd()));
    });
  }
  static void show(Network& network, const std::string& address) {
    for (const RealDescriptors* each : all()) {
      if (each->address_ != address) continue;
      set(each->control_, network.is_ready(each->inner_->control_fd()));
      set(each->data_, network.take_ready(each->inner_->data_fd()));
    }
  }

  int control_fd() const override { return control_.get(); }
  int data_fd() const override { return data_.get(); }

  base::Status receive_frame(std::span<std::byte> frame, size_t& length) override {
    return inner_->receive_frame(frame, length);
  }
  base::Status send_frame(std::span<const std::byte> frame, bool attach) override {
    return inner_->send_frame(frame, attach);
  }
  size_t poll(std::span<transport::Event> events) override { return inner_->poll(events); }
  void arm() override { inner_->arm(); }
  void ready() override { inner_->ready(); }
  base::Status map_region(const transport::RegionShape& shape) override { return inner_->map_region(shape); }
  const transport::Limits& limits() const override { return inner_->limits(); }
  std::byte* request_image() override { return inner_->request_image(); }
  const std::byte* response_image() const override { return inner_->response_image(); }
  void stage_write(uint32_t lane, size_t offset, size_t length, uint64_t first_word) override {
    inner_->stage_write(lane, offset, length, first_word);
  }
  void stage_ringing_write(uint32_t lane, size_t offset, size_t length, uint64_t first_word) override {
    inner_->stage_ringing_write(lane, offset, length, first_word);
  }
  void stage_read(uint32_t lane, size_t offset, size_t length, uint64_t tag) override {
    inner_->stage_read(lane, offset, length, tag);
  }
  void flush() override { inner_->flush(); }
  void ring(uint32_t lane) override { inner_->ring(lane); }
  void close() override { inner_->close(); }

 private:
  static std::vector<RealDescriptors*>& all() {
    static std::vector<RealDescriptors*> endpoints;
    return endpoints;
  }
  static base::UniqueFd make() { return base::UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }
  static void set(const base::UniqueFd& descriptor, bool is_ready) {
    uint64_t count = 0;
    while (::read(descriptor.get(), &count, sizeof count) > 0) {
    }
    count = 1;
    if (is_ready && ::write(descriptor.get(), &count, sizeof count) != sizeof count) std::abort();
  }

  const std::string address_;
  const std::unique_ptr<transport::ClientEndpoint> inner_;
  const base::UniqueFd control_, data_;
};

client::Settings settings_of(const Scenario& scenario, const LibraryOptions& options, const std::string& address,
                             uint32_t number) {
  client::Settings settings;
  settings.members = {{.address = address, .name = "backend"}};
  settings.session = scenario.session;
  settings.session.worker_id = 1'000'000 + 2 * uint64_t{number};
  settings.session.window = scenario.relayed.is_on ? scenario.relayed.window : scenario.layout.window;
  settings.session.relayed_to = options.relayed_to;
  settings.most_pending = 64;
  settings.value_memory = 16 << 20;
  return settings;
}

}  // namespace

SimLibrary::SimLibrary(World& world, uint32_t number, const LibraryOptions& options)
    : world_(world),
      options_(options),
      address_(options.server + "@l" + std::to_string(number)),
      settings_(settings_of(world.scenario, options, address_, number)) {
  client::ForkGuard::install();  // before the first engine; in programs the C interface calls it
  engine_ =
      std::make_unique<client::Engine>(settings_, world.clock, client::Engine::OnPool{}, RealDescriptors::connect);
}

SimLibrary::~SimLibrary() = default;

bool SimLibrary::is_woken() const {
  return RealDescriptors::is_any_ready(world_.network, address_);
}

bool SimLibrary::is_asleep() const {
  if (frozen_) return true;
  return blocked_ && !is_woken() && (is_finished() || waits_);
}

// Programs of their own share no lock. Here they share ForkGuard's, being in one process; so no program gets a turn within
// another's.
void SimLibrary::step() {
  static bool is_any_acting = false;
  if (frozen_ || is_any_acting) return;
  is_any_acting = true;
  act();
  is_any_acting = false;
}

void SimLibrary::act() {
  const bool may_submit = !is_finished() && !waits_ && world_.rng.percent(15);
  const bool is_woken = this->is_woken();
  if (blocked_ && !is_woken && !may_submit) return;
  blocked_ = false;
  if (is_woken) {
    RealDescriptors::show(world_.network, address_);
    engine_->on_ready();
    waits_ = false;
  }
  if (may_submit) submit();
  while (engine_->poll()) {
    if (std::exchange(waits_, false)) submit();
  }
  if (!options_.sleeps_always && world_.rng.percent(50)) return;
  blocked_ = engine_->arm();
  if (!blocked_) waits_ = false;  // what came may have freed credit: submit again
  sleeps_ += blocked_;
}

void SimLibrary::submit() {
  for (uint32_t burst = world_.rng.between(1, world_.scenario.burst); burst > 0 && !is_finished(); --burst) {
    if (world_.rng.percent(10)) engine_->begin_on_host();
    if (!submit_one()) return;
  }
}

bool SimLibrary::submit_one() {
  if (draft_ == nullptr) draft_ = world_.model.draw_op(true);
  op::Op op = draft_->op;
  OpRecord& record = world_.model.record_of(*draft_);
  if (record.is_long && session().is_open()) {
    const uint32_t lane = session().lanes().of(session().lanes().hash(op.key)).number();
    world_.model.goes_in_parts(record, session().grant().session_id, lane);
  }
  const Taken taken = engine_->submit(op, *this, &record, 0, false);
  waits_ = is_for_later(taken);
  if (taken != Taken::kYes) return false;
  world_.model.is_sent(record, session().grant().session_id, session().lanes().of(op.hash).number());
  // Its value need not stay: what is sent later is a copy.
  draft_.reset();
  ++submitted_;
  return true;
}

// Values come whole, in as many pieces as they were fetched in.
void SimLibrary::on_answer(const client::Call& call, const op::Result& result) {
  std::string bytes(result.value);
  for (const std::string_view piece : result.further) bytes += piece;
  if (bytes.size() != result.total_length) world_.model.fail(address_ + " was given a part of a value");
  if (call.is_unsent(result)) world_.model.is_said_unsent(*static_cast<OpRecord*>(call.context));
  op::Result whole = result;
  whole.value = bytes;
  world_.model.check_answer(*static_cast<OpRecord*>(call.context), whole);
}

std::string SimLibrary::describe() {
  return address_ + (blocked_ ? " blocked" : " awake") + (waits_ ? ", waits" : "") + ", " +
         std::to_string(engine_->pending()) + " under way";
}

}  // namespace egret::sim
