"""A relay between proxies and a backend that ends their sessions, so that both sides make new ones all the time.

    proxy ──▶ relay's socket ──▶ backend's socket         frames and the descriptors that go with them
       └────────── shared memory ───────┘                  the data does not pass here

Nobody has to be restarted for it: the items stay, and every value can be checked.
"""

import random
import selectors
import socket
import threading

MOST_FRAME = 65536
MOST_DESCRIPTORS = 16


class Relay:
    def __init__(self, path, backend_path):
        self.backend_path = str(backend_path)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(path))
        self.listener.listen(64)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.partner = {}
        self.ended = 0
        self.lock = threading.Lock()
        self.stopping = False
        self.thread = threading.Thread(target=self._work)
        self.thread.start()

    def _work(self):
        while not self.stopping:
            for key, _ in self.selector.select(0.05):
                with self.lock:
                    if key.fileobj is self.listener:
                        self._accept()
                    elif key.fileobj in self.partner:
                        self._pass_on(key.fileobj)

    def _accept(self):
        proxy, _ = self.listener.accept()
        backend = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            backend.connect(self.backend_path)
        except OSError:
            proxy.close()
            backend.close()
            return
        for one, other in ((proxy, backend), (backend, proxy)):
            self.partner[one] = other
            self.selector.register(one, selectors.EVENT_READ)

    def _pass_on(self, one):
        descriptors = []
        try:
            frame, descriptors, _, _ = socket.recv_fds(one, MOST_FRAME, MOST_DESCRIPTORS)
            if frame:
                socket.send_fds(self.partner[one], [frame], descriptors)
            else:
                self._end(one)
        except OSError:
            self._end(one)
        finally:
            for descriptor in descriptors:
                socket.close(descriptor)

    def _end(self, one):
        other = self.partner.pop(one)
        del self.partner[other]
        for each in (one, other):
            self.selector.unregister(each)
            each.close()
        self.ended += 1

    def end_one(self, rng: random.Random):
        """Ends one of the sessions that there are."""
        with self.lock:
            if self.partner:
                self._end(rng.choice(list(self.partner)))

    def stop(self):
        self.stopping = True
        self.thread.join()
        with self.lock:
            while self.partner:
                self._end(next(iter(self.partner)))
        self.listener.close()
