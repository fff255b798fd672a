// The table of libegret's options as Markdown: docs/client/options.md and the man page are made of it.
#include <cstdio>

#include "base/options/options.h"
#include "client/config/settings.h"

int main() {
  std::fputs(egret::base::help_markdown(egret::client::option_table()).c_str(), stdout);
  return 0;
}
