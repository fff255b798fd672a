"""libegret-preload.so: which sockets it serves, which it leaves alone, and that a program sees what it would see over TCP. That answers
are the same, byte for byte: conformance_preloaded runs other files of this suite with the library in the test's own process."""

import os
import pathlib
import re
import subprocess

import pytest

from preloaded import RUN
from servers import SLACK, SUT, Egret, EgretPool, stats_of
from test_client_authentication import AuthenticatedEgret
from test_real_clients import CLIENTS, SCRIPTS

pytestmark = pytest.mark.skipif(SUT != "egret", reason="Egret's own")


@pytest.fixture
def egret():
    found = Egret(proxy={"workers": 1})
    yield found
    found.stop()


ONE_OF_EACH = """
sock = connect()
say(ask(sock, b"set k 0 0 2\\r\\nhi\\r\\n"), ask(sock, b"get k\\r\\n", b"END\\r\\n"), ask(sock, b"delete k\\r\\n"))
say(ask(sock, b"version\\r\\n")[:8], ask(sock, b"stats\\r\\n", b"END\\r\\n").count(b"STAT ") > 20, ask(sock, b"get k\\r\\n", b"END\\r\\n"))
sock.close()
"""
ANSWERS = ["b'STORED\\r\\n' b'VALUE k 0 2\\r\\nhi\\r\\nEND\\r\\n' b'DELETED\\r\\n'", "b'VERSION ' True b'END\\r\\n'"]


def test_key_commands_go_by_slots_and_all_others_over_the_connection(egret, preloaded):
    assert preloaded.run(ONE_OF_EACH, *egret.address) == ANSWERS
    assert preloaded.served() == (4, 2)


@pytest.mark.parametrize("interpreter, script, arguments", [row[1:] for row in SCRIPTS], ids=[row[0] for row in SCRIPTS])
def test_clients_of_other_languages_are_served(egret, preloaded, interpreter, script, arguments):
    said = preloaded.run_client([*interpreter, CLIENTS / script, *egret.address, *arguments])
    assert said.count("pass") >= 7
    assert preloaded.served()[0] >= 10, preloaded.log()


def test_what_a_program_loads_is_served_and_found_where_the_program_would_find_it(egret, preloaded):
    """An extension that is to prefer libc's functions to this library's (RTLD_DEEPBIND, as PHP loads its own), which a library
    loads by a bare name that only that library's run path leads to."""
    inner = preloaded.directory / "inner"
    inner.mkdir()
    sources = {
        inner / "libasks.so": """
            #include <netinet/in.h>
            #include <stdlib.h>
            #include <sys/socket.h>
            #include <unistd.h>
            int ask(const char* port, char* heard, int room) {
              struct sockaddr_in at = {AF_INET, htons(atoi(port)), {htonl(INADDR_LOOPBACK)}};
              const int fd = socket(AF_INET, SOCK_STREAM, 0);
              if (connect(fd, (struct sockaddr*)&at, sizeof at) != 0 || send(fd, "get k\\r\\n", 7, 0) != 7) return -1;
              const int got = recv(fd, heard, room, 0);
              close(fd);
              return got;
            }""",
        preloaded.directory / "libloads.so": """
            #define _GNU_SOURCE
            #include <dlfcn.h>
            void* load(void) { return dlopen("libasks.so", RTLD_NOW | RTLD_DEEPBIND); }""",
    }
    for library, text in sources.items():
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library, f"-Wl,-rpath,{inner}"], input=text, text=True, check=True)
    said = preloaded.run("""
        import ctypes
        load = ctypes.CDLL(sys.argv[3]).load
        load.restype = ctypes.c_void_p
        asks = ctypes.CDLL("libasks.so", handle=load())
        heard = ctypes.create_string_buffer(100)
        say(asks.ask(sys.argv[2].encode(), heard, 100), heard.value)
        """, *egret.address, preloaded.directory / "libloads.so")
    assert said == ["5 b'END\\r\\n'"] and preloaded.served() == (1, 0)


def test_the_proxy_never_sees_what_goes_straight_to_the_backend(egret, preloaded):
    before = int(stats_of(egret.address)["egret_ops"])
    preloaded.run("sock = connect()\nfor i in range(100): ask(sock, b'set k 0 0 1\\r\\nx\\r\\n')\n", *egret.address)
    assert int(stats_of(egret.address)["egret_ops"]) <= before + 10, "stats asks each partition"


def test_a_unix_socket_is_served_too(egret, preloaded):
    said = preloaded.run("""
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(sys.argv[3])
        say(ask(sock, b"set k 0 0 2\\r\\nhi\\r\\n"))
        sock.close()
        """, *egret.address, egret.unix_address())
    assert said == ["b'STORED\\r\\n'"] and preloaded.served() == (1, 0)


@pytest.mark.parametrize("proxy, environment", [({"slots": "none"}, {}), ({}, {"EGRET_PRELOAD": "off"})], ids=["no slots", "switched off"])
def test_what_cannot_or_shall_not_be_served_is_left_alone(preloaded, proxy, environment):
    egret = Egret(proxy={"workers": 1, **proxy})
    try:
        assert preloaded.run(ONE_OF_EACH, *egret.address, **environment) == ANSWERS
        assert "is served by slots" not in preloaded.log()
        assert ("is left alone: no egret-proxy listens for slots there" in preloaded.log()) == ("slots" in proxy), preloaded.log()
    finally:
        egret.stop()


def test_a_server_that_is_no_proxy_is_left_alone(oracle, preloaded):
    assert preloaded.run(ONE_OF_EACH, *oracle.address) == ANSWERS
    assert preloaded.log().count("is left alone: no egret-proxy listens for slots there") == 1, preloaded.log()


def test_the_log_says_why_a_proxy_is_left_alone_and_the_program_is_served_by_its_socket(egret, preloaded, tmp_path):
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("backend_uid: 5\n")
    assert preloaded.run(ONE_OF_EACH, *egret.address, EGRET_CONFIG=str(wrong)) == ANSWERS
    assert re.search(r"is left alone: .*backend_uid\b", preloaded.log()), preloaded.log()
    if os.geteuid() == 0:
        preloaded.directory.chmod(0o755)
        preloaded.log_path.chmod(0o666)
        as_nobody = "import os\nos.setuid(65534)\n" + ONE_OF_EACH
        assert preloaded.run(as_nobody, *egret.address) == ANSWERS
        assert re.search(r"is left alone: .*slots_uids or slots_gids; this is uid 65534", preloaded.log()), preloaded.log()
        assert "may not connect (see slots_uids and slots_gids)" in egret.proxies[0].log()
    assert preloaded.served() == (0, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_the_log_says_who_may_not_open_the_slots_of_a_unix_socket(egret, preloaded):
    path = pathlib.Path(egret.unix_address())
    path.chmod(0o666)
    for folder in (path.parent, preloaded.directory):
        folder.chmod(0o755)
    preloaded.log_path.touch()
    preloaded.log_path.chmod(0o666)
    said = preloaded.run("""
        os.setuid(65534)
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(sys.argv[3])
        say(ask(sock, b"get k\\r\\n", b"END\\r\\n"))
        """, *egret.address, path)
    assert said == ["b'END\\r\\n'"]
    assert re.search(r"left alone: uid 65534 may not open shm:\S+\.slots: .*slots_uids or slots_gids", preloaded.log()), preloaded.log()


@pytest.mark.parametrize("size", [10, 16000, 300_000])
def test_a_meta_set_that_comes_in_pieces_is_answered_with_its_own_flags(egret, preloaded, size):
    said = preloaded.run(f"""
        sock = connect()
        for flags, head in ((b"k O25", b"HD kkey O25"), (b"b k O7", b"HD ka2V5 b O7"), (b"O1 k MS", b"HD O1 kkey")):
            key = b"a2V5" if flags.startswith(b"b") else b"key"
            text = b"ms " + key + b" %d " % {size} + flags + b"\\r\\n" + b"x" * {size} + b"\\r\\n"
            sock.sendall(text[:20])
            time.sleep(0.01)
            answer = ask(sock, text[20:])
            say(sorted(answer.split()) == sorted(head.split()) or answer)
        sock.close()
        """, *egret.address)
    assert said == ["True"] * 3 and preloaded.served() == (3, 0)


def test_a_log_that_cannot_be_written_is_said(egret, preloaded):
    said = preloaded.run(ONE_OF_EACH, *egret.address, EGRET_PRELOAD_LOG=str(preloaded.directory))
    assert said[0].startswith("egret-run: EGRET_PRELOAD_LOG cannot be written: ") and said[-2:] == ANSWERS


def test_ways_of_waiting(egret, preloaded):
    """poll, select and a time-out; before an answer has come, and behind it."""
    said = preloaded.run("""
        sock = connect()
        sock.setblocking(False)
        try:
            say(sock.recv(10))
        except BlockingIOError:
            say("nothing")
        say(select.select([sock], [sock], [], 0.01) == ([], [sock], []))
        sock.send(b"set k 0 0 2\\r\\nhi\\r\\n")
        say(select.select([sock], [], [], 30) == ([sock], [], []), sock.recv(100))
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        say(poll.poll(10))
        sock.send(b"get k\\r\\n")
        say(poll.poll(30000) == [(sock.fileno(), select.POLLIN)], sock.recv(4, socket.MSG_PEEK), sock.recv(100))
        sock.settimeout(0.05)
        try:
            sock.recv(10)
        except socket.timeout:
            say("timed out")
        """, *egret.address)
    assert said == ["nothing", "True", "True b'STORED\\r\\n'", "[]", "True b'VALU' b'VALUE k 0 2\\r\\nhi\\r\\nEND\\r\\n'", "timed out"]


def test_who_does_not_wait_has_no_answer_to_what_was_just_sent(egret, preloaded):
    """As over a network; libmemcached with a poll timeout of 0 counts on it. The socket blocks, or does not, as the program last said."""
    said = preloaded.run("""
        sock = connect()
        ask(sock, b"set k 0 0 1\\r\\nv\\r\\n")
        sock.setblocking(True)
        def get():
            sock.sendall(b"get k\\r\\n")
            try:
                return sock.recv(100).decode().split()[0]
            except BlockingIOError:
                select.select([sock], [], [])
                return "later " + sock.recv(100).decode().split()[0]
        for change in (sock.setblocking, lambda blocks: os.set_blocking(sock.fileno(), blocks)):
            for blocks in (True, False, True):
                change(blocks)
                say(get())
    """, *egret.address)
    assert said == 2 * ["VALUE", "later VALUE", "VALUE"]
    assert preloaded.served() == (7, 0)


def test_a_socket_in_an_epoll_set_is_served_by_its_connection(egret, preloaded):
    said = preloaded.run("""
        sock = connect()
        epoll = select.epoll()
        epoll.register(sock, select.EPOLLIN)
        sock.send(b"get k\\r\\n")
        say(epoll.poll(30) == [(sock.fileno(), select.EPOLLIN)], sock.recv(100))
        """, *egret.address)
    assert said == ["True b'END\\r\\n'"] and preloaded.served() == (0, 0)


def test_commands_without_an_answer_keep_their_place(egret, preloaded):
    said = preloaded.run("""
        sock = connect()
        for i in range(200):
            sock.send(b"set k 0 0 1 noreply\\r\\nx\\r\\nflush_all noreply\\r\\nset k2 0 0 1 noreply\\r\\ny\\r\\n")
            heard = ask(sock, b"get k k2\\r\\n", b"END\\r\\n")
            if heard != b"VALUE k2 0 1\\r\\ny\\r\\nEND\\r\\n": say(i, heard)
        """, *egret.address)
    assert said == []


def test_hanging_up_for_sending_keeps_all_answers(egret, preloaded):
    said = preloaded.run("""
        sock = connect()
        sock.sendall(b"set k 0 0 1\\r\\nx\\r\\n" + b"get k\\r\\n" * 500 + b"version\\r\\n")
        sock.shutdown(socket.SHUT_WR)
        heard = b""
        while more := sock.recv(1000): heard += more
        say(heard.count(b"VALUE k 0 1\\r\\nx\\r\\nEND\\r\\n"), heard[-20:].split(b"\\r\\n")[-2][:7])
        """, *egret.address)
    assert said == ["500 b'VERSION'"]


def test_a_child_finds_the_connection_reset_and_makes_its_own(egret, preloaded):
    said = preloaded.run("""
        sock = connect()
        ask(sock, b"set k 0 0 1\\r\\nx\\r\\n")
        child = os.fork()
        if child == 0:
            try:
                ask(sock, b"get k\\r\\n", b"END\\r\\n")
                say("served by the parent's")
            except ConnectionResetError:
                say("reset", ask(connect(), b"get k\\r\\n", b"END\\r\\n"))
            os._exit(0)
        os.waitpid(child, 0)
        say(ask(sock, b"get k\\r\\n", b"END\\r\\n"))
        """, *egret.address)
    assert said == ["reset b'VALUE k 0 1\\r\\nx\\r\\nEND\\r\\n'", "b'VALUE k 0 1\\r\\nx\\r\\nEND\\r\\n'"]


def test_children_that_execute_something_else_leave_the_socket_as_it_was(egret, preloaded):
    said = preloaded.run("""
        sock = connect()
        for i in range(20):
            subprocess.run(["true"], close_fds=i % 2 == 0)
            heard = ask(sock, b"set k 0 0 1\\r\\nx\\r\\n")
            if heard != b"STORED\\r\\n": say(i, heard)
        """, *egret.address)
    assert said == []


def test_threads_have_sockets_of_their_own_and_may_hand_one_over(egret, preloaded):
    said = preloaded.run("""
        wrong = []
        def work(number, sock):
            for i in range(300):
                key = b"%d.%d" % (number, i % 7)
                if ask(sock, b"set %s 0 0 3\\r\\n%03d\\r\\n" % (key, i)) != b"STORED\\r\\n": wrong.append(key)
                if ask(sock, b"get %s\\r\\n" % key, b"END\\r\\n") != b"VALUE %s 0 3\\r\\n%03d\\r\\nEND\\r\\n" % (key, i): wrong.append(key)
        handed = [connect() for _ in range(4)]
        threads = [threading.Thread(target=work, args=(n, handed[n] if n < 4 else connect())) for n in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        say(wrong)
        for sock in handed: sock.close()
        """, *egret.address)
    assert said == ["[]"] and preloaded.served()[0] >= 4 * 600


def test_a_number_that_is_used_again_is_another_socket(egret, preloaded):
    said = preloaded.run("""
        for i in range(50):
            sock = connect()
            number = sock.fileno()
            heard = ask(sock, b"get k\\r\\n", b"END\\r\\n")
            sock.close()
            read, write = os.pipe()
            os.write(write, b"of the pipe")
            if heard != b"END\\r\\n" or os.read(read, 100) != b"of the pipe": say(i, heard)
            os.close(read), os.close(write)
        """, *egret.address)
    assert said == []


def test_passwords_are_asked_for_as_over_the_socket(preloaded, tmp_path):
    users = tmp_path / "users"
    users.write_text("anna:secret\n")
    users.chmod(0o600)
    found = AuthenticatedEgret(users)
    try:
        said = preloaded.run("""
            import struct
            def packet(opcode, key=b"", value=b""):
                return struct.pack(">BBHBBHIIQ", 0x80, opcode, len(key), 0, 0, 0, len(key) + len(value), 0, 0) + key + value
            def status(sock, request):
                sock.sendall(request)
                head = b""
                while len(head) < 24: head += sock.recv(24 - len(head))
                body = struct.unpack(">I", head[8:12])[0]
                while body: body -= len(sock.recv(body))
                return struct.unpack(">H", head[6:8])[0]
            sock = connect()
            say(ask(sock, b"get k\\r\\n"))
            sock = connect()
            say(ask(sock, b"set auth 0 0 10\\r\\nanna wrong\\r\\n"))
            sock = connect()
            say(ask(sock, b"set auth 0 0 11\\r\\nanna secret\\r\\n"), ask(sock, b"set k 0 0 1\\r\\nx\\r\\n"), ask(sock, b"get k\\r\\n", b"END\\r\\n"))
            sock = connect()
            say(status(sock, packet(0x00, b"k")), sock.recv(1))
            sock = connect()
            say([status(sock, each) for each in (packet(0x21, b"PLAIN", b"\\0anna\\0secret"), packet(0x00, b"k"))])
            """, *found.address)
    finally:
        found.stop()
    assert said == ["b'CLIENT_ERROR unauthenticated\\r\\n'", "b'CLIENT_ERROR authentication failure\\r\\n'",
                    "b'STORED\\r\\n' b'STORED\\r\\n' b'VALUE k 0 1\\r\\nx\\r\\nEND\\r\\n'", "32 b''", "[0, 0]"], preloaded.log()


def test_a_killed_proxy_is_a_closed_connection(egret, preloaded):
    program = preloaded.start("""
        sock = connect()
        say(ask(sock, b"set k 0 0 1\\r\\nx\\r\\n"))
        sys.stdin.readline()
        try:
            for i in range(1000):
                heard = ask(sock, b"version\\r\\n")
                if b"(closed)" in heard: break
            say("closed")
        except OSError as error:
            say("closed")
        sys.stdin.readline()
        say(ask(connect(), b"get k\\r\\n", b"END\\r\\n"))
        """, *egret.address)
    assert program.stdout.readline() == "b'STORED\\r\\n'\n"
    egret.proxies[0].kill()
    program.stdin.write("\n")
    program.stdin.flush()
    assert program.stdout.readline() == "closed\n"
    egret.start_proxy(0)
    egret.wait_ready(0)
    program.stdin.write("\n")
    program.stdin.flush()
    said, _ = program.communicate(timeout=60 * SLACK)
    assert said == "b'VALUE k 0 1\\r\\nx\\r\\nEND\\r\\n'\n", said + preloaded.log()


def test_a_killed_backend_is_answered_as_over_the_socket(egret, preloaded):
    program = preloaded.start("""
        sock = connect()
        say(ask(sock, b"set k 0 0 1\\r\\nx\\r\\n"))
        sys.stdin.readline()
        for i in range(1000):
            heard = ask(sock, b"get k\\r\\n")
            if heard.startswith(b"SERVER_ERROR"): break
        say(heard.split(b" ")[0])
        sys.stdin.readline()
        for i in range(3000):
            heard = ask(sock, b"set k 0 0 1\\r\\ny\\r\\n")
            if heard == b"STORED\\r\\n": break
            time.sleep(0.01)
        say(heard)
        """, *egret.address)
    assert program.stdout.readline() == "b'STORED\\r\\n'\n"
    egret.kill_backend()
    program.stdin.write("\n")
    program.stdin.flush()
    assert program.stdout.readline() == "b'SERVER_ERROR'\n"
    egret.start_backend()
    egret.wait_ready(0)
    program.stdin.write("\n")
    program.stdin.flush()
    said, _ = program.communicate(timeout=60 * SLACK)
    assert said == "b'STORED\\r\\n'\n", said + preloaded.log()


def test_daemons_are_replaced_under_load(egret, preloaded):
    """Of each answered set the next get finds the value, or nothing where the backend is a new one."""
    program = preloaded.start("""
        asked = []
        def listen():
            for line in sys.stdin: asked.append(line)
            asked.append(None)
        threading.Thread(target=listen, daemon=True).start()
        def get(sock):
            sock.sendall(b"get k\\r\\n")
            heard = b""
            while not heard.endswith(b"END\\r\\n") and not (heard.startswith(b"SERVER_ERROR") and heard.endswith(b"\\r\\n")):
                more = sock.recv(65536)
                if not more: raise OSError("closed")
                heard += more
            return heard
        sock, number, done, wanted, wrong, errors = None, 0, 0, None, 0, 0
        while True:
            if wanted is None and asked:
                if asked.pop(0) is None: break
                wanted = done + 200
            try:
                sock = sock or connect()
                number += 1
                if ask(sock, b"set k 0 0 8\\r\\n%08d\\r\\n" % number) != b"STORED\\r\\n": raise OSError("not stored")
                heard = get(sock)
                if heard.startswith(b"SERVER_ERROR"): raise OSError("not found")
                wrong += heard not in (b"VALUE k 0 8\\r\\n%08d\\r\\nEND\\r\\n" % number, b"END\\r\\n")
                done += 1
            except OSError:
                errors += 1
                sock = None
                time.sleep(0.01)
            if wanted is not None and done >= wanted:
                wanted = None
                say("goes on")
        say(wrong, "wrong")
        """, *egret.address)

    def wait_for_more():
        program.stdin.write("\n")
        program.stdin.flush()
        assert program.stdout.readline() == "goes on\n", preloaded.log()

    wait_for_more()
    for replace in (lambda: (egret.proxies[0].stop(), egret.start_proxy(0)), lambda: (egret.backend.stop(), egret.start_backend()), lambda: (egret.proxies[0].kill(), egret.start_proxy(0))):
        replace()
        assert egret.wait_ready(0)
        wait_for_more()
    said, _ = program.communicate(timeout=60 * SLACK)
    assert said == "0 wrong\n", said + preloaded.log()
    assert preloaded.served()[0] > 400, preloaded.log()


def test_a_pool_is_one_server_to_the_program(preloaded):
    pool = EgretPool(["one", "two"])
    try:
        said = preloaded.run("""
            sock = connect()
            for i in range(200): ask(sock, b"set k%d 0 0 3\\r\\n%03d\\r\\n" % (i, i))
            heard = ask(sock, b"get " + b" ".join(b"k%d" % i for i in range(200)) + b"\\r\\n", b"END\\r\\n")
            say(heard == b"".join(b"VALUE k%d 0 3\\r\\n%03d\\r\\n" % (i, i) for i in range(200)) + b"END\\r\\n")
            sock.close()
            """, *pool.address)
        assert said == ["True"] and preloaded.served() == (400, 0)
    finally:
        pool.stop()


def test_a_reader_and_a_writer_of_one_socket(egret, preloaded):
    """The reader waits before anything is asked."""
    said = preloaded.run("""
        for wait in ("recv", "poll"):
            sock = connect()
            sock.settimeout(None)
            heard = []
            def read():
                if wait == "poll":
                    poll = select.poll()
                    poll.register(sock, select.POLLIN)
                    poll.poll()
                heard.append(sock.recv(100))
            reader = threading.Thread(target=read)
            reader.start()
            time.sleep(0.3)
            sock.sendall(b"get k\\r\\n")
            reader.join(30)
            say(wait, heard)
        """, *egret.address)
    assert said == ["recv [b'END\\r\\n']", "poll [b'END\\r\\n']"]


def test_the_end_behind_what_has_no_answer(egret, preloaded):
    said = preloaded.run("""
        for last in (b"", b"quit\\r\\n"):
            sock = connect()
            sock.settimeout(None)
            sock.sendall(b"set k 0 0 1 noreply\\r\\nx\\r\\n" + last)
            if not last: sock.shutdown(socket.SHUT_WR)
            say(sock.recv(100))
        say(ask(connect(), b"get k\\r\\n", b"END\\r\\n"))
        """, *egret.address)
    assert said == ["b''", "b''", "b'VALUE k 0 1\\r\\nx\\r\\nEND\\r\\n'"]


@pytest.mark.parametrize("last", ["sock.close()", "pass", "os._exit(0)"], ids=["closed", "ends in order", "ends at once"])
def test_what_was_sent_is_done_when_the_program_goes(egret, preloaded, last):
    large = 700_000 if last == "sock.close()" else 10
    preloaded.run(f"""
        sock = connect()
        sock.sendall(b"set k 0 0 {large} noreply\\r\\n" + b"x" * {large} + b"\\r\\n")
        {last}
        """, *egret.address)
    said = preloaded.run("say(len(ask(connect(), b'get k\\r\\n', b'END\\r\\n')))", *egret.address)
    assert said == [str(len(f"VALUE k 0 {large}\r\n\r\nEND\r\n") + large)]


def test_half_a_command_stays_with_the_socket_that_is_duplicated(egret, preloaded):
    said = preloaded.run("""
        for half, rest in ((b"get ke", b"y\\r\\n"), (b"set key 0 0 5\\r\\n", b"hello\\r\\n"), (b"", b"get key\\r\\n")):
            sock = connect()
            if half: sock.sendall(half)
            other = os.dup(sock.fileno())
            say(ask(sock, rest))
            os.close(other)
        sock = connect()
        with sock.makefile("rwb") as stream:
            stream.write(b"get key\\r\\n")
            stream.flush()
            say(stream.readline())
        """, *egret.address)
    assert said == ["b'END\\r\\n'", "b'STORED\\r\\n'", "b'VALUE key 0 5\\r\\nhello\\r\\nEND\\r\\n'", "b'VALUE key 0 5\\r\\n'"]


def test_children_of_a_forked_child_leave_it_as_it_was(egret, preloaded):
    said = preloaded.run("""
        sock = connect()
        ask(sock, b"set k 0 0 1\\r\\nx\\r\\n")
        child = os.fork()
        if child == 0:
            subprocess.run(["true"], close_fds=True)
            sock.close()
            own = connect()
            say(ask(own, b"get k\\r\\n", b"END\\r\\n"))
            own.close()
            os._exit(0)
        os.waitpid(child, 0)
        """, *egret.address)
    assert said == ["b'VALUE k 0 1\\r\\nx\\r\\nEND\\r\\n'"]
    assert preloaded.log().count("is served by slots") == 2, preloaded.log()


def test_select_writes_no_more_of_a_set_than_the_program_has(egret, preloaded):
    """As Perl does, whose sets are as long as they must be."""
    said = preloaded.run("""
        import ctypes
        libc = ctypes.CDLL(None)
        sock = connect()
        sock.sendall(b"get k\\r\\n")
        size = sock.fileno() // 64 * 8 + 8
        memory = ctypes.create_string_buffer(b"\\xaa" * 256, 256)
        ctypes.memset(memory, 0, size)
        memory[sock.fileno() // 8] = 1 << sock.fileno() % 8
        found = libc.select(sock.fileno() + 1, memory, None, None, None)
        say(found, memory.raw[size:] == b"\\xaa" * (256 - size), memory[sock.fileno() // 8] == bytes([1 << sock.fileno() % 8]))
        """, *egret.address)
    assert said == ["1 True True"]


# Says by whose function it connects, whether the kernel has the loader distrust its environment, who it is, and what it is answered.
WHOSE = r"""
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <netinet/in.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/auxv.h>
    #include <sys/socket.h>
    #include <unistd.h>
    int main(int count, char** words) {
      struct sockaddr_in at = {AF_INET, htons(atoi(words[count - 1])), {htonl(INADDR_LOOPBACK)}};
      Dl_info info;
      char heard[100] = "";
      const int fd = socket(AF_INET, SOCK_STREAM, 0);
      if (dladdr(dlsym(RTLD_DEFAULT, "connect"), &info) == 0 || connect(fd, (struct sockaddr*)&at, sizeof at) != 0) return 1;
      if (write(fd, "get k\r\n", 7) != 7 || read(fd, heard, sizeof heard - 1) <= 0) return 2;
      printf("%s secure=%lu euid=%d egid=%d %s", strrchr(info.dli_fname, '/') + 1, getauxval(AT_SECURE), geteuid(), getegid(), heard);
      return close(fd);
    }"""


def can_change_user(directory):
    with open("/proc/self/status", encoding="ascii") as status:
        is_held = "NoNewPrivs:\t1" in status.read()
    if os.getuid() != 0 or is_held or os.statvfs(directory).f_flag & os.ST_NOSUID:
        return False
    scratch = directory / "scratch"
    scratch.touch()
    try:
        os.chown(scratch, 65534, 65534)
    except OSError:  # a user namespace without that user
        return False
    return True


@pytest.mark.parametrize("bit, who", [(0o4000, "euid=65534 egid=0"), (0o2000, "euid=0 egid=65534")], ids=["setuid", "setgid"])
def test_a_program_that_runs_as_somebody_else_is_not_preloaded_and_is_served_by_its_socket(egret, preloaded, bit, who):
    """Whoever starts it must not bring code into it: the loader sees to that, and egret-run does not work around it."""
    if not can_change_user(preloaded.directory):
        pytest.skip("a program's setuid bit is without effect here")
    program = preloaded.directory / "whose"
    subprocess.run(["cc", "-x", "c", "-", "-o", program], input=WHOSE, text=True, check=True)
    assert preloaded.run_client([program, egret.address[1]]) == "libegret-preload.so secure=0 euid=0 egid=0 END\n"
    assert preloaded.served() == (1, 0)
    before = preloaded.log()
    os.chown(program, 65534, 65534)
    program.chmod(0o755 | bit)
    assert preloaded.run_client([program, egret.address[1]]) == f"libc.so.6 secure=1 {who} END\n"
    assert preloaded.log() == before, "nothing of it is logged, so nothing of the library has run"


def test_egret_run_says_how_it_is_used():
    for arguments, status in ((["--help"], 0), (["--version"], 0), ([], 2), (["--nothing"], 2)):
        done = subprocess.run([RUN, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == status and "egret-run" in done.stdout + done.stderr
