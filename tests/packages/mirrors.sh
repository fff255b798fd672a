#!/bin/bash
# Lines of sources.list for this host's mirrors of Debian 12; none if it is another system. For images that tests make.
set -euo pipefail
apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
  { grep -E ' bookworm(-updates|-security)? ' || true; } | sort -u
