"""A small shop over HTTP with four tracepoints, which can be switched on while it serves.

Run it with `TRACEPOINT=1 python service.py 8080`; then `tracepoint ps` finds it.  See
docs/howto/trace-a-python-service.md.
"""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import tracepoint as tp
from tracepoint.model.python.types import u16, u32, u64

PRICES = {"tea": 350, "coffee": 420, "cake": 510}
STOCK = dict.fromkeys(PRICES, 20)
ORDERS = []


@tp.trace_event(system="web", printk='"%s %s", method, path')
def request_start(method: str, path: str) -> None:
    """Fire when a request was read."""


@tp.trace_event(system="web", printk='"%s status=%u took=%lluus", path, status, duration_us')
def request_done(path: str, status: u16, duration_us: u64) -> None:
    """Fire when the answer was sent."""


@tp.trace_event(
    system="shop", printk='"order=%u customer=%s item=%s total=%u", order_id, customer, item, total'
)
def order_placed(order_id: u32, customer: str, item: str, total: u32) -> None:
    """Fire when an order was taken; `total` is in cents."""


@tp.trace_event(system="shop", printk='"item=%s left=%u", item, left')
def stock_low(item: str, left: u32) -> None:
    """Fire when fewer than five pieces are left."""


def place(customer: str, item: str, pieces: int) -> dict[str, object]:
    """Take an order; raises KeyError for an unknown item."""
    total = PRICES[item] * pieces
    STOCK[item] = max(STOCK[item] - pieces, 0)
    ORDERS.append((customer, item, pieces))
    order_placed(len(ORDERS), customer, item, total)
    if STOCK[item] < 5:
        stock_low(item, STOCK[item])
    return {"order": len(ORDERS), "total": total}


class Shop(BaseHTTPRequestHandler):
    """Answers GET /stock and GET /order/CUSTOMER/ITEM/PIECES."""

    def do_GET(self) -> None:
        """Answer one request."""
        begin = time.monotonic_ns()
        request_start(self.command, self.path)
        status, answer = self.answer()
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        request_done(self.path, status, (time.monotonic_ns() - begin) // 1000)

    def answer(self) -> tuple[int, object]:
        """Return status and content."""
        match self.path.strip("/").split("/"):
            case ["stock"]:
                return 200, STOCK
            case ["order", customer, item, pieces] if item in PRICES and pieces.isdigit():
                return 200, place(customer, item, int(pieces))
            case _:
                return 404, {"error": "no such page"}

    def log_message(self, *_: object) -> None:
        """Keep quiet: that is what the tracepoints are for."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Shop)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
