"""The example service: switched on from the shell while it serves, filtered, read in trace-cmd and Python."""

import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

pytestmark = pytest.mark.programs

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "web_service"


def split_url(url):
    found = urllib.parse.urlsplit(url)
    return found.hostname, found.port


@pytest.fixture
def service(tmp_path):
    environment = {**os.environ, "TRACEPOINT": "1", "TRACEPOINT_SOCKETS": str(tmp_path / "sockets")}
    program = subprocess.Popen(
        [sys.executable, str(EXAMPLE / "service.py"), "0"], stdout=subprocess.PIPE, text=True, env=environment
    )
    url = program.stdout.readline().strip()
    environment.pop("TRACEPOINT")

    def command(*words, name="ps", status=0):
        done = subprocess.run(
            [sys.executable, "-m", "tracepoint", name, "--pid", str(program.pid), *words],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        assert done.returncode == status, done.stderr
        return done.stderr if status else done.stdout

    def get(path):
        try:
            with urllib.request.urlopen(url + path, timeout=10) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            error.close()
            return error.code

    get.url = url
    yield command, get
    program.kill()
    program.wait()
    program.stdout.close()


def test_the_service_is_traced_while_it_serves(service, tmp_path):
    command, get = service
    assert get("/order/zoe/tea/1") == 200
    assert command("--list").split()[1::2] == [
        "shop:stock_low",
        "shop:order_placed",
        "web:request_done",
        "web:request_start",
    ]
    command("--enable", "shop:", "web:request_done")
    command("--filter", "shop:order_placed", 'total > 1000 && customer != "bob"')
    for path in ("/order/ada/tea/3", "/order/bob/cake/9", "/order/cyd/cake/8", "/order/ada/tea/1", "/nosuch"):
        get(path)
    text = command("--cat", "trace")
    assert "order_placed: order=2 customer=ada item=tea total=1050\n" in text
    assert "customer=bob" not in text
    assert "stock_low: item=cake left=3\n" in text
    assert re.search(r"request_done: /nosuch status=404 took=\d+us\n", text)
    assert "request_start" not in text
    target = tmp_path / "shop.dat"
    command("--record", str(target))
    read = subprocess.run(
        [sys.executable, str(EXAMPLE / "read_trace.py"), str(target)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "order_placed: order=2 customer=ada item=tea total=1050\n" in read
    assert read.splitlines()[-3:] == [
        "     2 shop:order_placed",
        "     1 shop:stock_low",
        "     5 web:request_done",
    ]
    if shutil.which("trace-cmd") is not None:
        report = subprocess.run(
            ["trace-cmd", "report", "-i", str(target)], capture_output=True, text=True, check=True
        ).stdout
        assert report.count("request_done:") == 5
        assert "order=2 customer=ada item=tea total=1050" in report


def test_the_commands_of_the_page(service, tmp_path):
    """The words for the running kernel, with a process's number."""
    command, get = service
    assert command(name="list").split() == [
        "shop:order_placed",
        "shop:stock_low",
        "web:request_done",
        "web:request_start",
    ]
    command("shop:", "web:request_done", name="enable")
    told = command("shop:order_placed", "totl > 1000", name="filter", status=4)
    assert "no field 'totl'; did you mean 'total'?\n  totl > 1000\n       ^\n" in told
    command("shop:order_placed", "total > 1000", name="filter")
    get("/order/ada/tea/1")
    get("/order/ada/tea/3")
    assert command("--cat", "trace").count("order_placed:") == 1
    target = tmp_path / "shop.dat"
    # To the end of the connection, which comes after the last event.
    order = (
        f"import socket; stream = socket.create_connection({split_url(get.url)!r}, 60)\n"
        "stream.sendall(b'GET /order/zoe/cake/9 HTTP/1.0\\r\\n\\r\\n')\n"
        "while stream.recv(4096): pass"
    )
    command("shop:", "web:", "-o", str(target), "--", sys.executable, "-c", order, name="record")
    read = subprocess.run(
        [sys.executable, str(EXAMPLE / "read_trace.py"), str(target)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert re.search(r"\S-\d+ +\[\d+\] \.{5} +\d+\.\d+: order_placed: order=3 customer=zoe item=cake", read)
    assert read.endswith("     1 shop:order_placed\n     1 web:request_done\n     1 web:request_start\n")
