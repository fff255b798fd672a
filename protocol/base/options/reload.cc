#include "base/options/reload.h"

#include <string_view>

#include "base/clock.h"
#include "base/log/log.h"
#include "base/service/notify.h"
#include "base/text.h"

namespace egret::base {

namespace {

std::string joined(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

std::string reloading_notice() {
  return std::string(kNotifyReloading) + "\nMONOTONIC_USEC=" + std::to_string(SystemClock().now_ns() / 1000);
}

}  // namespace

Reloader::Reloader(OptionSources sources, Options in_force, std::function<Status(const Options&)> check)
    : sources_(std::move(sources)), in_force_(std::move(in_force)), check_(std::move(check)) {}

bool Reloader::reload(const Apply& apply, ReloadCounters& counters) {
  notify_supervisor(reloading_notice());
  const Status done = try_to(apply);
  (done ? counters.succeeded : counters.failed).add(1);
  std::string status;
  if (!done) {
    status = "reload refused, everything stays as it was: " + one_line(done.message());
    log(kReloadRefused, "{}", field("why", status));
  }
  notify_supervisor(std::string(kNotifyReady) + "\n" + std::string(kNotifyStatus) + status);
  return done.is_ok();
}

Status Reloader::try_to(const Apply& apply) {
  auto loaded = Options::load(in_force_.table(), sources_.config_file, sources_.set_arguments);
  if (!loaded) return loaded.status();
  if (Status good = check_(loaded.value()); !good) return good;
  std::vector<std::string_view> kept;
  const Options next = in_force_.renewed_by(loaded.value(), kept);
  // Check again, since kept values and new values together may be invalid.
  if (Status good = kept.empty() ? Status::ok() : check_(next); !good) return good;
  if (Status applied = apply(next); !applied) return applied;
  const std::vector<std::string_view> changed = in_force_.differing_from(next);
  for (const std::string_view name : kept) {
    log(kNeedsRestart, "reload: {} takes effect at a restart: it is {} until then, not {}", field("option", name),
        field("in_force", in_force_.written_beside(loaded.value(), name)),
        field("wanted", loaded.value().written_beside(in_force_, name)));
  }
  in_force_ = next;
  log(kReloaded, "reloaded: {}",
      changed.empty() ? "no option has changed, files are read again" : "changed: " + joined(changed));
  return Status::ok();
}

}  // namespace egret::base
