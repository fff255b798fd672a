#include "rpc/session_table.h"

#include <charconv>
#include <string>

#include "base/options/secret.h"
#include "wire/slot.h"

namespace egret::rpc {

using base::Options;
using base::Status;

namespace {

Status parse_fetch(const Options& options, FetchOptions& fetch) {
  const std::string& mode = options.text("fetch_mode");
  fetch.mode = mode == "fetch" ? FetchMode::kFetch : mode == "reply" ? FetchMode::kReply : FetchMode::kAuto;
  fetch.max_refetches = static_cast<uint32_t>(options.integer("max_refetches"));
  fetch.min_fetch = static_cast<uint32_t>(options.size("fetch_min"));
  fetch.max_fetch = static_cast<uint32_t>(options.size("fetch_max"));
  for (const char* name : {"fetch_min", "fetch_max"}) {
    if (options.size(name) % kFetchStep != 0) return options.error(name, "expected a multiple of 64");
  }
  if (fetch.min_fetch <= fetch.max_fetch) return Status::ok();
  return options.error("fetch_max", "less than fetch_min, which is " + options.written("fetch_min"));
}

Status parse_fabric(const Options& options, transport::FabricOptions& fabric) {
  fabric.ack_timeout = static_cast<uint8_t>(options.integer("ack_timeout"));
  const auto byte_of = [&](const char* name) {
    const int64_t given = options.integer(name);
    return given < 0 ? std::optional<uint8_t>() : static_cast<uint8_t>(given);
  };
  fabric.tos = byte_of("tos");
  fabric.gid_index = byte_of("gid_index");
  const std::string& pkey = options.text("pkey");
  if (pkey.empty()) return Status::ok();
  uint16_t number = 0;
  const char* const end = pkey.data() + pkey.size();
  const bool is_hex = pkey.starts_with("0x") && pkey.size() > 2;
  const auto [stopped, error] = std::from_chars(pkey.data() + (is_hex ? 2 : 0), end, number, 16);
  if (!is_hex || error != std::errc{} || stopped != end || (number & 0x7fff) == 0) {
    return options.error("pkey", "expected a partition like 0x8001, got \"" + pkey + "\"");
  }
  fabric.pkey = number;
  return Status::ok();
}

Status parse_slot_size(const Options& options, const char* name, uint32_t& size) {
  const uint64_t given = options.size(name);
  if (given != 0 && given < wire::kMinSlotSize) return options.error(name, "expected 0, or 1KiB and more");
  if (given % 64 != 0) return options.error(name, "expected a multiple of 64");
  size = static_cast<uint32_t>(given);
  return Status::ok();
}

Status parse_sizes(const Options& options, SessionOptions& session) {
  session.most_memory = options.size("session_memory");
  session.window = static_cast<uint32_t>(options.integer("window"));
  if (Status good = parse_slot_size(options, "request_slot_size", session.request_slot_size); !good) return good;
  if (Status good = parse_slot_size(options, "response_slot_size", session.response_slot_size); !good) return good;
  if (Status good = parse_slot_size(options, "idle_slot_size", session.growth.slot_size); !good) return good;
  session.growth.window = static_cast<uint32_t>(options.integer("idle_window"));
  if (session.growth.window != 0 && session.growth.window < wire::kMinWindow)
    return options.error("idle_window", "expected 0, or " + std::to_string(wire::kMinWindow) + " and more");
  session.growth.idle_ns = options.duration_ns("give_back_after");
  return Status::ok();
}

}  // namespace

Status read_session_options(const Options& options, bool roomy, SessionOptions& session) {
  if (const std::string& path = options.text("secret_file"); !path.empty()) {
    auto secret = base::read_secret(path);
    if (!secret) return options.error("secret_file", secret.message());
    session.secret = std::move(secret.value());
  }
  session.connect.backend_uids.clear();
  if (Status good = options.user_ids("backend_uids", session.connect.backend_uids); !good) return good;
  if (Status good = parse_sizes(options, session); !good) return good;
  session.connect.queue_pairs = static_cast<uint32_t>(options.integer("qps_per_session"));
  if (Status good = parse_fabric(options, session.connect.fabric); !good) return good;
  session.op_timeout_ns = options.duration_ns("op_timeout");
  session.backoff_max_ns = options.duration_ns("reconnect_max");
  session.spin_ns = options.duration_ns("spin");
  if (session.spin_ns == 0) session.spin_ns = roomy ? 20'000 : 2'000;
  return parse_fetch(options, session.fetch);
}

}  // namespace egret::rpc
