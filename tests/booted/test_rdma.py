"""test_rdma.py: the units over a Soft-RoCE device, on one host and between two."""
import tempfile, unittest

from hosts import DAEMONS, Host, HostTest

SECRET = "a secret of this test, 32 letters"
SECRET_FILE = "secret_file: /etc/egret/secret"


def share_secret(host):
    host.must(f"printf '{SECRET}' | install -m 0400 -o egret -g egret /dev/stdin /etc/egret/secret")


def stats(host):
    """What the proxy's `stats` say: name → figure."""
    said = host.must("exec 3<>/dev/tcp/127.0.0.1/11211; printf 'stats\\r\\nquit\\r\\n' >&3; cat <&3")
    return {words[1]: words[2] for words in (line.split() for line in said.splitlines()) if len(words) == 3}


class OneHost(HostTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.host.must("bash /share/soft_roce.sh 0 1")

    def test_both_units_serve_through_an_rdma_device(self):
        host = self.host
        host.install(*DAEMONS)
        share_secret(host)
        since = host.now()
        host.serving(backend=f"listen: [rdma:10.9.0.1:11311]\npartitions: 2\nmemory: 128MiB\n{SECRET_FILE}",
                     proxy=f"backends: [rdma:10.9.0.1:11311]\n{SECRET_FILE}")
        host.use_client()
        self.assertGreater(int(stats(host)["egret_rings"]), 0)
        self.assertIn("rxe0 port 1", host.journal("egret-proxy", since))
        self.assertNotIn("shm", host.journal("egret-backend", since))
        # With a lane that has fallen asleep it begins by a ring.
        host.must("sleep 2")
        host.use_client()
        # Under the unit's user, limits and devices.
        said = host.must("systemd-run -q --pipe --wait -p User=egret -p LimitMEMLOCK=infinity -p LimitNOFILE=65536 -p DevicePolicy=closed "
                         "-p 'DeviceAllow=char-infiniband_verbs rw' -p 'DeviceAllow=/dev/infiniband/rdma_cm rw' "
                         "egret-proxy --config /etc/egret/egret-proxy.yaml --doctor")
        self.assertNotIn("FAIL", said)

    def test_a_wrong_secret_is_refused_and_said(self):
        host = self.host
        host.install(*DAEMONS)
        share_secret(host)
        host.must("printf 'another secret than the backend has' | install -m 0400 -o egret -g egret /dev/stdin /etc/egret/wrong")
        host.serving()
        since = host.now()
        host.configure("egret-backend", f"listen: [rdma:10.9.0.1:11311]\n{SECRET_FILE}")
        host.configure("egret-proxy", "backends: [rdma:10.9.0.1:11311]\nsecret_file: /etc/egret/wrong")
        host.must("systemctl restart egret-backend egret-proxy")
        host.wait_for(f"journalctl -q -o cat -u egret-proxy --since '{since}' | grep -i secret", "the proxy to say that its secret is wrong")
        self.assertIn("SERVER_ERROR", host.must("exec 3<>/dev/tcp/127.0.0.1/11211; printf 'get k\\r\\nquit\\r\\n' >&3; cat <&3"))


class TwoHosts(unittest.TestCase):
    def test_a_proxy_is_served_by_a_backend_on_another_host(self):
        with tempfile.TemporaryDirectory() as folder, Host(0, f"{folder}/wire") as near, Host(1, f"{folder}/wire") as far:
            for host in (near, far):
                host.wait_booted()
                host.must(f"bash /share/soft_roce.sh {host.number} 2")
            far.install("egret-backend")
            near.install("--no-install-recommends egret-proxy")
            for host in (near, far):
                share_secret(host)
            far.configure("egret-backend", f"listen: [rdma:10.9.0.2:11311]\n{SECRET_FILE}")
            near.configure("egret-proxy", f"backends: [rdma:10.9.0.2:11311]\n{SECRET_FILE}")
            far.must("systemctl restart egret-backend")
            near.must("systemctl restart egret-proxy")
            near.wait_served()
            near.use_client()
            far.must(f"kill -9 {far.pid('egret-backend')}")
            near.wait_served()
            near.use_client()
