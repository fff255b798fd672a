"""Metrics of daemons that there are not: they grow by known steps, and are served as the admin address does.

    FakeDaemon(proxy_text) ─ HTTP ─▶ whoever is tested;  .mode = "answer" | "stall" | "fail"
"""
import http.server, threading


def histogram(name, labels, bounds, counts):
    lines, total, comma = [], 0, "," if labels else ""
    for bound, count in zip([*bounds, "+Inf"], counts):
        total += count
        lines.append(f'{name}_bucket{{{labels}{comma}le="{bound}"}} {total}')
    return lines


def proxy_text(tick, backends=3, start=1000):
    """The n-th answer of a proxy: 800 gets, 200 sets a tick; every second backend in reply mode, backend 1 down."""
    p = "egret_proxy_"
    lines = ["# HELP egret_proxy_requests_total Requests.", "# TYPE egret_proxy_requests_total counter", p + 'build_info{version="9.8.7"} 1',
             f"process_cpu_seconds_total {tick * 0.5}", "process_resident_memory_bytes 34603008", "process_open_fds 77", f"process_start_time_seconds {start}",
             p + "connections 12", p + "max_connections 4096", f"{p}connections_accepted_total {tick * 2}", p + "connections_rejected_total 0", p + "idle_kicks_total 0",
             f'{p}requests_total{{command="get"}} {tick * 800}', f'{p}requests_total{{command="set"}} {tick * 200}', p + 'requests_total{command="delete"} 0',
             f"{p}get_hits_total {tick * 600}", f"{p}get_misses_total {tick * 200}", f"{p}received_bytes_total {tick * 65536}", f"{p}sent_bytes_total {tick * 1048576}",
             p + "request_errors_total 0"]
    lines += histogram(p + "request_seconds", "", [0.0001, 0.001, 0.01], [tick * 500, tick * 480, tick * 15, tick * 5])
    for b in range(backends):
        name, up = f'backend="cache-{b}"', 0 if b == 1 else 1
        lines.append(f'{p}backend_info{{{name},transport="rdma",address="rdma:10.0.0.{b}:11311"}} 1')
        lines += [f'{p}backend_transport_sessions{{{name},transport="{by}"}} {open}' for by, open in (("rdma", 2 * up), ("tcp", 0))]
        lines += [f"{p}backend_up{{{name}}} {up}", f"{p}backend_sessions{{{name}}} {2 * up}"]
        lines += histogram(p + "rpc_seconds", name, [0.00001, 0.0001], [tick * 70 * up, tick * 29 * up, tick * up])
        for lane in range(2):
            labels = f'{name},lane="{lane}"'
            for row, step in (("messages", 50), ("ops", 400), ("fetches", 60), ("refetches", 10), ("torn", 0), ("wants", 1), ("rings", 2), ("timeouts", 0)):
                lines.append(f"{p}lane_{row}_total{{{labels}}} {tick * step * (b + 1) * up}")
            lines += [f"{p}lane_replies_mode{{{labels}}} {b % 2}", f"{p}lane_fetch_size_bytes{{{labels}}} 512"]
    return "\n".join(lines) + "\n"


def backend_text(tick, partitions=4, start=1000):
    b = "egret_backend_"
    lines = [b + 'build_info{version="9.8.7"} 1', f"process_cpu_seconds_total {tick}", "process_resident_memory_bytes 1073741824", "process_open_fds 33", f"process_start_time_seconds {start}",
             b + "sessions 3", *(f'{b}transport_sessions{{transport="{name}"}} {open}' for name, open in (("shm", 1), ("rdma", 2), ("tcp", 0))), b + "max_sessions 64", b + "session_memory_bytes 3145728"]
    for n in range(partitions):
        for row, value in (("cmd_get_total", 800), ("cmd_set_total", 100), ("get_hits_total", 700), ("get_misses_total", 100), ("evictions_total", 10), ("evicted_unfetched_total", 3),
                           ("store_no_memory_total", 0), ("ops_total", 900), ("messages_total", 300)):
            lines.append(f'{b}{row}{{partition="{n}"}} {tick * value * (n + 1)}')
        for row, value in (("curr_items", 100000), ("bytes", 50 << 20), ("limit_maxbytes", 64 << 20), ("lanes", 3), ("lanes_awake", 2)):
            lines.append(f'{b}{row}{{partition="{n}"}} {value}')
    return "\n".join(lines) + "\n"


class FakeDaemon:
    """Each answer is `make(tick)` of the next tick. Use as a context."""

    def __init__(self, make, port=0):
        self.make, self.tick, self.mode, self.released = make, 0, "answer", threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                if outer.mode == "stall":
                    outer.released.wait(60)
                if outer.mode == "gone":
                    self.close_connection = True
                    return
                outer.tick += 1
                body = outer.make(outer.tick).encode()
                self.send_response(200 if self.path == "/metrics" and outer.mode != "fail" else 503)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

            def handle(self):
                try:
                    super().handle()
                except OSError:
                    pass  # who was tested went away

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads, block_on_close = True, False

        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        self.address = f"127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.mode = "gone"  # for connections that are kept open
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
