"""What an operator is told: by --doctor, --check-config, the log and the admin pages, when something is not as it should be."""

import pytest

from doctor import doctor
from servers import SUT, free_port

pytestmark = pytest.mark.skipif(SUT != "egret", reason="what Egret's daemons say")


# --- limits

def test_doctor_counts_the_descriptors_that_the_proxy_will_need(tmp_path):
    """The sum is the one by which the proxy lowers max_connections, and doctor says to what."""
    backends = ",".join(f"shm:{tmp_path}/{number}.sock" for number in range(3))
    said = doctor("egret-proxy", f"backends={backends}", f"listen=tcp:127.0.0.1:{free_port()}", "workers=4", "max_connections=100", open_files=400)
    assert ("warn open files: the limit is 400, 548 may be needed: 100 clients (max_connections) + 16 x 4 workers x 3 backends + 256; "
            "max_connections would be lowered to 1 => ") in said
