// The bytes that a preloaded program sends: cut anywhere they lead to the same answers and to the same commands beside the slots, no
// backend answers here, so every op is answered as not sent. And what the engine gives away when its connection takes over is the
// rest of what was put, byte for byte.
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "client/preload/bytes_engine.h"
#include "client/process/fork.h"
#include "input.h"

using namespace egret;

namespace {

base::Expected<std::unique_ptr<transport::ClientEndpoint>> nobody(const std::string&,
                                                                  const transport::ConnectOptions&) {
  return base::Status::error("nobody is there");
}

struct Said {
  std::string answers;
  std::vector<std::string> aside;
  bool is_over = false;
  bool operator==(const Said&) const = default;
};

// What comes of `bytes`, put in pieces of these lengths in turn.
Said play(client::Engine& engine, std::string_view bytes, const std::vector<size_t>& lengths) {
  Said said;
  preload::BytesEngine subject(engine);
  size_t turn = 0;
  bool has_left = false;
  while (!bytes.empty() && !has_left && !said.is_over) {
    const size_t length = std::min(bytes.size(), lengths[turn++ % lengths.size()]);
    subject.put(bytes.substr(0, length));
    bytes.remove_prefix(length);
    subject.poll();
    while (subject.has_aside() && !has_left) {
      said.aside.push_back(subject.aside());
      if (subject.aside().empty()) std::abort();
      if (subject.aside_end() == preload::AsideEnd::kNever) {
        has_left = true;
        if (!std::string(subject.leave()).starts_with(said.aside.back())) std::abort();
      } else {
        subject.resume();
      }
    }
    said.answers += subject.output();
    subject.take(subject.output().size());
    said.is_over = subject.is_over();
  }
  if (subject.is_awaited()) std::abort();  // nobody is there who could answer later
  return said;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const client::Settings settings = [] {
    client::ForkGuard::install();
    client::Settings made;
    made.members.push_back({"shm:/nowhere", "nowhere", 1});
    made.most_pending = 64;
    made.value_memory = 1 << 20;
    made.session.backoff_min_ns = made.session.backoff_max_ns = uint64_t{1} << 60;
    return made;
  }();
  static const base::SystemClock clock;
  static client::Engine engine(settings, clock, {}, nobody);
  fuzz::Input input(data, size);
  std::vector<size_t> lengths;
  for (int i = 0; i < 4; ++i) lengths.push_back(1 + input.take<uint8_t>());
  const auto rest = input.bytes(size);
  const std::string_view bytes(reinterpret_cast<const char*>(rest.data()), rest.size());
  if (!(play(engine, bytes, {bytes.size() + 1}) == play(engine, bytes, lengths))) std::abort();
  return 0;
}
