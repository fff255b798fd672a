"""test_one_host.py: the packages on a booted Debian, as its operator meets them."""
import re

from hosts import DAEMONS, HostTest

MOST_EXPOSURE = 2.0
# What apt, dpkg, systemd and man keep of their own.
OTHERS_FILES = r"^/(proc|sys|dev|run/(systemd|udev|log|mount|dbus)|share|tmp|root)(/|$)|^/var/(cache|log|tmp)/|^/var/lib/(apt|systemd|private)/|" \
               r"^/var/lib/dpkg/([\w-]+-old|lock|triggers/.*)$|^/etc/(passwd|shadow|group|gshadow|subuid|subgid)-$|^/etc/\.pwd\.lock$|\.pyc$"


def get(port, path):
    """A line of bash that asks an admin address."""
    return f"exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET {path} HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"


class OneHost(HostTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.host.must("apt-get -q update")
        cls.files_before = cls.every_file()
        cls.users_before = cls.host.must("cat /etc/passwd /etc/group")

    @classmethod
    def every_file(cls):
        names = cls.host.must("find / -path /proc -prune -o -path /sys -prune -o -path /share -prune -o -print").splitlines()
        return {name for name in names if not re.search(OTHERS_FILES, name)}

    def purge(self):
        self.host.must("apt-get -q purge -y --autoremove egret-backend egret-proxy egret-tools")

    def test_a_fresh_install_serves(self):
        host = self.host
        self.purge()
        since = host.now()
        host.install(*DAEMONS)
        host.wait_served()
        host.use_client()
        for daemon in DAEMONS:
            self.assertEqual([host.show(daemon, key) for key in ("ActiveState", "UnitFileState", "Type", "WatchdogUSec", "User", "NRestarts")],
                             ["active", "enabled", "notify", "30s", "egret", "0"], daemon)
            self.assertIn("egret", host.must(f"stat -c %U /proc/{host.pid(daemon)}"))
            self.assertEqual(host.journal(daemon, since, "-p err"), "")
            said = host.must(f"systemd-analyze security --no-pager {daemon}")
            self.assertLessEqual(float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", said)[1]), MOST_EXPOSURE)
        self.assertEqual(host.journal("egret-backend", since, "-p warning"), "")
        for port, name in ((11280, "egret_proxy_build_info"), (11281, "egret_backend_build_info")):
            self.assertIn(" 200 ", host.must(get(port, "/readyz")).splitlines()[0])
            self.assertIn(name, host.must(get(port, "/metrics")))

    def test_tools_documents_and_completion_are_there(self):
        host = self.host
        host.install(*DAEMONS, "egret-tools")
        for page in ("egret-proxy.8", "egret-backend.8", "egret-memcached.1", "egret-bench.1", "egret-top.1"):
            name, section = page.split(".")
            self.assertIn(name, host.must(f"MANWIDTH=100 man -P cat {section} {name}"))
        for program in ("egret-proxy", "egret-backend", "egret-memcached", "egret-bench", "egret-top"):
            host.must(f"bash -ic '. /usr/share/bash-completion/bash_completion; _completion_loader {program}; complete -p {program}'")
        host.serving()
        self.assertRegex(host.must("egret-top --once"), r"(?s)egret-proxy 127.0.0.1:11280  up.*egret-backend 127.0.0.1:11281  up")
        host.must("egret-bench --connect 127.0.0.1:11211 --rounds 1 --connections 4 --keys 1000")  # its status says that every answer was right

    def test_a_reload_applies_what_can_change_and_tells_what_cannot(self):
        host = self.host
        host.serving()
        before, since = [host.pid(daemon) for daemon in DAEMONS], host.now()
        host.configure("egret-backend", "log_level: debug\npartitions: 2\nmemory: 64MiB")
        host.configure("egret-proxy", "log_level: debug\nworkers: 2\nlisten: [tcp:127.0.0.1:11211, tcp:127.0.0.1:11311]")
        for daemon, waits in (("egret-backend", "partitions"), ("egret-proxy", "workers")):
            host.must(f"systemctl reload {daemon}")
            host.wait_for(f"journalctl -q -o cat -u {daemon} --since '{since}' | grep '^reloaded: changed: .*log_level'", f"{daemon} to say what changed")
            self.assertIn(f"reload: {waits} takes effect at a restart", host.journal(daemon, since, "-p warning"))
        host.wait_for("exec 3<>/dev/tcp/127.0.0.1/11311; printf 'version\\r\\nquit\\r\\n' >&3; grep -q VERSION <&3", "the new address to be served")
        host.use_client()
        self.assertEqual([host.pid(daemon) for daemon in DAEMONS], before)

    def test_a_reload_of_a_wrong_file_is_refused(self):
        host = self.host
        host.serving()
        before, since = [host.pid(daemon) for daemon in DAEMONS], host.now()
        for daemon in DAEMONS:
            host.configure(daemon, "# not an hour of quiet\nlog_level: loud")
            self.assertNotEqual(host.run(f"systemctl reload {daemon}")[0], 0)
            self.assertRegex(host.journal(daemon, since), rf"{daemon}\.yaml:2.*log_level")
            # Whoever sends the signal by hand hears of it, too.
            host.must(f"systemctl kill -s HUP {daemon}")
            host.wait_for(f"systemctl show -p StatusText {daemon} | grep 'reload refused.*{daemon}.yaml:2'", f"{daemon} to refuse")
        host.use_client()
        self.assertEqual([host.pid(daemon) for daemon in DAEMONS], before)

    def test_a_killed_daemon_is_back(self):
        host = self.host
        host.serving()
        for killed, other in (DAEMONS, reversed(DAEMONS)):
            before, untouched = host.pid(killed), host.pid(other)
            host.must(f"kill -9 {before}")
            host.wait_for(f"[[ $(systemctl show --value -p MainPID {killed}) != @(0|{before}) ]] && systemctl is-active {killed}", f"{killed} to be back")
            host.wait_served()
            host.use_client()
            self.assertEqual((host.pid(other), host.show(other, "NRestarts")), (untouched, "0"))
            host.must("systemctl reset-failed")

    def test_the_watchdog_restarts_a_daemon_that_hangs(self):
        host = self.host
        host.serving()
        since = host.now()
        before = {daemon: host.pid(daemon) for daemon in DAEMONS}
        host.must(f"kill -STOP {before['egret-backend']} {before['egret-proxy']}")
        for daemon in DAEMONS:
            host.wait_for(f"[[ $(systemctl show --value -p MainPID {daemon}) != @(0|{before[daemon]}) ]] && systemctl is-active {daemon}", f"{daemon} to be back")
            self.assertIn("Watchdog timeout", host.journal(daemon, since))
        host.wait_served()
        host.use_client()

    def test_a_removal_keeps_what_was_configured(self):
        host = self.host
        host.serving(proxy="workers: 1")
        host.must("apt-get -q remove -y egret-proxy")
        self.assertNotEqual(host.run("pgrep -x egret-proxy")[0], 0)
        self.assertEqual(host.must("cat /etc/egret/egret-proxy.yaml").strip(), "workers: 1")
        host.must("systemctl is-active egret-backend")
        host.install("egret-proxy")
        self.assertEqual(host.must("cat /etc/egret/egret-proxy.yaml").strip(), "workers: 1")
        host.wait_served()

    def test_a_purge_leaves_nothing(self):
        host = self.host
        host.install(*DAEMONS, "egret-tools")
        host.serving(proxy="workers: 1")
        self.purge()
        self.assertEqual(self.every_file() - self.files_before, set())
        self.assertEqual(self.users_before, host.must("cat /etc/passwd /etc/group"))
        self.assertEqual(host.must("systemctl list-units --all --plain --no-legend 'egret*'; systemctl list-unit-files --no-legend 'egret*' || true"), "")
        self.assertNotEqual(host.run("pgrep egret")[0], 0)
