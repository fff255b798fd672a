#include "tls/options.h"

#include <utility>

namespace egret::tls {

using base::Expected;
using base::Options;

namespace {

constexpr const char* kCertificate = "session_tls_certificate";
constexpr const char* kKey = "session_tls_key";
constexpr const char* kAuthorities = "session_tls_ca";
constexpr const char* kNames = "session_tls_names";

const char* option_of(Fault::Part part) {
  switch (part) {
    case Fault::Part::kCertificate:
      return kCertificate;
    case Fault::Part::kKey:
      return kKey;
    case Fault::Part::kAuthorities:
      return kAuthorities;
  }
  return kCertificate;
}

}  // namespace

Expected<std::shared_ptr<const Mutual>> read_options(const Options& options) {
  MutualOptions wanted{.certificate = options.text(kCertificate),
                       .key = options.text(kKey),
                       .authorities = options.text(kAuthorities),
                       .names = options.list(kNames)};
  if (wanted.certificate.empty()) {
    for (const char* const other : {kKey, kAuthorities}) {
      if (!options.text(other).empty()) return options.error(other, "needs a session_tls_certificate, too");
    }
    return std::shared_ptr<const Mutual>();
  }
  if (wanted.authorities.empty()) {
    return options.error(kAuthorities, "is empty: session_tls_certificate needs the authorities of the other side");
  }
  for (const std::string& name : wanted.names) {
    if (name.empty() || name.size() > 255) return options.error(kNames, "expected host names or addresses");
  }
  auto loaded = Mutual::load(wanted);
  if (const auto* const fault = std::get_if<Fault>(&loaded)) return options.error(option_of(fault->part), fault->what);
  return std::get<std::shared_ptr<const Mutual>>(std::move(loaded));
}

}  // namespace egret::tls
