"""A web service with an event at the begin and the end of each request, and a client that asks for N of them.

Requests compute, sleep, or wait for a lock; the end has what the program itself measured: the time of the
request, and the time that its thread ran.  What was recorded is saved as FILE.

    shop.py N FILE
"""

import http.client
import http.server
import os
import sys
import threading
import time

import tracepoint as tp

N_CLIENTS = 4


@tp.trace_event(system="shop", printk='"id=%llu path=%s", id, path')
def request_begin(id: tp.u64, path: str) -> None: ...  # noqa: A002 - the field of the event


@tp.trace_event(system="shop", printk='"id=%llu wall=%llu cpu=%llu", id, wall_ns, cpu_ns')
def request_end(id: tp.u64, wall_ns: tp.u64, cpu_ns: tp.u64) -> None: ...  # noqa: A002


till = threading.Lock()


def work(number: int) -> None:
    """Do what a request is for."""
    match number % 4:
        case 0:
            sum(n * n for n in range(3000))
        case 1:
            time.sleep(0.003)
        case 2:
            with till:
                time.sleep(0.002)
        case _:
            with till:
                sum(n * n for n in range(1000))


class Shop(http.server.BaseHTTPRequestHandler):
    """Answers GET /N."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Serve a request."""
        number = int(self.path[1:])
        cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
        request_begin(number, self.path)
        work(number)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
        cpu = time.thread_time_ns() - cpu
        request_end(number, time.perf_counter_ns() - wall, cpu)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def ask(port: int, first: int, n: int) -> None:
    """Ask for each N_CLIENTS-th request from `first` on, on one connection."""
    client = http.client.HTTPConnection("127.0.0.1", port)
    for number in range(first, n, N_CLIENTS):
        client.request("GET", f"/{number}")
        client.getresponse().read()
    client.close()


def main(n: int, path: str) -> None:
    """Serve n requests of a child process, and save what was recorded."""
    tp.tracing.clock = "mono"
    request_begin.enable()
    request_end.enable()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    child = os.fork()
    if not child:
        clients = [threading.Thread(target=ask, args=(server.server_port, i, n)) for i in range(N_CLIENTS)]
        for one in clients:
            one.start()
        for one in clients:
            one.join()
        os._exit(0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.waitpid(child, 0)
    server.shutdown()
    tp.save(path)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
