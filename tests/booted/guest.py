"""guest.py: Debian hosts that are booted in QEMU, for tests that run on this side and ask them to do things.

    Guest ─▶ QEMU: prepare.sh's disk, whose changes are forgotten ─▶ systemd ─▶ agent.py ◀─ must(), run()
                   /share: a folder of both, with apt's repository of our packages in it
"""
import json, os, pathlib, shutil, socket, subprocess, tempfile, time, unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("EGRET_BUILD", ROOT / "build/release")).resolve()
SKIPPED = 77
# Software emulation on a machine with other work: limits are there to end what hangs, not to measure.
BOOT_SECONDS = 400
COMMAND_SECONDS = 300
MEMORY_MIB = 2048


class GuestDied(Exception):
    pass


def kernel_and_initramfs():
    done = subprocess.run([ROOT / "tests/rdma/guest/prepare.sh", "disk"], stdout=subprocess.PIPE, text=True)
    if done.returncode == SKIPPED:
        raise unittest.SkipTest("this machine cannot run guests")
    return done.stdout.split()


class Guest:
    """One booted host: `with` ends it. Two are on a wire: numbers 0 and 1, and the same path of a socket."""

    def __init__(self, number=0, wire=None):
        self.packages = BUILD / "booted/packages"
        kernel, initramfs = kernel_and_initramfs()
        self.folder = tempfile.TemporaryDirectory(prefix="egret-booted-")
        self.share = pathlib.Path(self.folder.name, "share")
        self.share.mkdir(mode=0o755)
        os.chmod(self.folder.name, 0o755)
        for program in (HERE / "agent.py", HERE / "load.py", ROOT / "tests/rdma/guest/soft_roce.sh"):
            shutil.copy(program, self.share)
        self.publish("first")
        self.number = number
        self.start(kernel, initramfs, wire)

    def start(self, kernel, initramfs, wire):
        port = f"{self.folder.name}/commands"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(port)
        listener.listen(1)
        network = []
        if wire:
            while self.number == 1 and not os.path.exists(wire):  # guest 0 makes it as it starts
                time.sleep(0.1)
            network = ["-netdev", f"stream,id=wire,server={'on' if self.number == 0 else 'off'},addr.type=unix,addr.path={wire}",
                       "-device", f"virtio-net-pci,netdev=wire,mac=52:54:00:09:01:0{self.number + 1},mrg_rxbuf=off,host_mtu=9000"]
        accel = os.environ.get("EGRET_GUEST_ACCEL", "tcg,thread=multi,tb-size=256")
        self.process = subprocess.Popen(
            ["qemu-system-x86_64", "-M", "q35", "-accel", accel, "-cpu", "max,la57=off", "-smp", "1", "-m", str(MEMORY_MIB),
             "-display", "none", "-nodefaults", "-no-user-config", "-no-reboot", "-serial", f"file:{self.folder.name}/console",
             "-kernel", kernel, "-initrd", initramfs,
             "-append", "console=ttyS0 quiet panic=-1 mitigations=off nokaslr random.trust_cpu=on tsc=reliable systemd.show_status=0",
             "-drive", f"file={BUILD}/booted/root.ext4,format=raw,if=virtio,snapshot=on",
             "-device", "virtio-serial-pci", "-chardev", f"socket,id=commands,path={port}",
             "-device", "virtserialport,chardev=commands,name=commands",
             "-fsdev", f"local,id=share,path={self.share},security_model=none", "-device", "virtio-9p-pci,fsdev=share,mount_tag=share",
             "-device", "virtio-rng-pci", *network], stdin=subprocess.DEVNULL)
        listener.settimeout(COMMAND_SECONDS)
        self.port, _ = listener.accept()
        listener.close()
        self.received = b""

    def wait_booted(self):
        assert self.hear(BOOT_SECONDS).get("ready"), "the guest did not boot"

    def hear(self, seconds):
        """The next line that the guest says."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self.received:
            self.port.settimeout(max(0.1, deadline - time.monotonic()))
            try:
                part = self.port.recv(1 << 20)
            except TimeoutError:
                part = b""
            if not part:
                raise GuestDied(f"no answer in {seconds} s; its console:\n{self.console()}")
            self.received += part
        line, self.received = self.received.split(b"\n", 1)
        return json.loads(line)

    def console(self):
        return "\n".join(pathlib.Path(self.folder.name, "console").read_text(errors="replace").splitlines()[-30:])

    def run(self, command, seconds=COMMAND_SECONDS):
        """Runs a line of bash as root: its status, and what it said."""
        self.port.settimeout(COMMAND_SECONDS)
        self.port.sendall(json.dumps({"command": command, "seconds": seconds}).encode() + b"\n")
        answer = self.hear(seconds + COMMAND_SECONDS)
        return answer["status"], answer["output"]

    def must(self, command, seconds=COMMAND_SECONDS):
        status, output = self.run(command, seconds)
        assert status == 0, f"{command}: status {status}: {output}\n{self.run('journalctl -q --no-pager -n 25')[1]}"
        return output

    def publish(self, what):
        """What apt finds in our repository from now on: `first` or `next`."""
        repository = self.share / "packages"
        shutil.rmtree(repository, ignore_errors=True)
        shutil.copytree(self.packages / what, repository)
        index = subprocess.run(["dpkg-scanpackages", "."], cwd=repository, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        (repository / "Packages").write_bytes(index.stdout)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.port.close()
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
