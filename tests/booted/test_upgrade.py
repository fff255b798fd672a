"""test_upgrade.py: apt upgrades the daemons under load, in either order, and no client is left alone."""
from hosts import HostTest, Load

NEXT = "99.0"


class Upgrade(HostTest):
    def upgrade(self, package):
        host = self.host
        before = host.pid(package)
        host.publish("next")
        host.must(f"apt-get -q update && apt-get -q install -y --only-upgrade -o Dpkg::Options::=--force-confold {package}")
        self.assertEqual(host.must(f"dpkg-query -W -f '${{Version}}' {package}"), NEXT)
        self.assertNotIn(host.pid(package), (0, before))
        self.assertEqual(host.show(package, "ActiveState"), "active")

    def check_order(self, packages, lines=""):
        self.host.serving(backend=lines)
        with Load(self.host) as load:
            for package in packages:
                self.upgrade(package)
                load.let_it_work()
        self.assert_nobody_noticed(load.totals)
        self.assertEqual(load.totals["closed"], 0, "connections went over to the next process, but for these")

    def test_the_proxy_first(self):
        self.check_order(("egret-proxy", "egret-backend"))

    def test_the_backend_first(self):
        self.check_order(("egret-backend", "egret-proxy"))

    def test_a_backend_that_restarts_warm_keeps_its_items(self):
        host = self.host
        host.serving(backend="warm_restart: /dev/shm/egret")
        host.must("exec 3<>/dev/tcp/127.0.0.1/11211; printf 'set kept 0 0 4\\r\\nwarm\\r\\nquit\\r\\n' >&3; grep -q STORED <&3")
        self.upgrade("egret-backend")
        host.wait_served()
        self.assertIn("warm", host.must("exec 3<>/dev/tcp/127.0.0.1/11211; printf 'get kept\\r\\nquit\\r\\n' >&3; cat <&3"))

    def test_the_load_notices_what_it_looks_for(self):
        """So that no fault found is one that would have been."""
        host = self.host
        host.serving()
        with Load(host) as load:
            host.must("systemctl kill -s KILL egret-proxy && sleep 1 && systemctl stop egret-proxy.socket egret-proxy && sleep 2")
            host.must("systemctl start egret-proxy.socket egret-proxy")
            load.let_it_work()
        self.assertGreater(load.totals["unanswered"], 0, load.totals)
        self.assertGreater(load.totals["refused"], 0, load.totals)

    def test_an_edited_file_is_kept(self):
        host = self.host
        host.serving(proxy="workers: 1")
        self.upgrade("egret-proxy")
        self.assertEqual(host.must("cat /etc/egret/egret-proxy.yaml").strip(), "workers: 1")
