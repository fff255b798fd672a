// Who the client is: memcached's ASCII authentication, and SASL, of which PLAIN is known.
#pragma once

#include "proxy/commands/client_context.h"

namespace egret::proxy {

class Authentication {
 public:
  explicit Authentication(ClientContext& client) : client_(client) {}

  Outcome ascii();
  Outcome sasl();
  // An empty first message of SASL was answered; the next one is to have the password.
  bool is_under_way() const { return sasl_started_; }

 private:
  // Counts an attempt. Returns `known`.
  bool judge(bool known);
  void answer_sasl();

  ClientContext& client_;
  bool sasl_started_ = false;
};

}  // namespace egret::proxy
