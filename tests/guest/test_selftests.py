"""The kernel's selftests that docs/reference/selftests.md calls matters of syntax, in the kernel itself."""

from pathlib import Path

import pytest

from guest.conftest import kernel_or_skip
from runtime.test_selftests import RESULT, SUITE, listed, suite_or_skip, those_that_need
from tracepoint.lab.guest import machine as lab_guest

pytestmark = pytest.mark.guest
# The suite wants the usual programs: this machine's, seen read-only.
SETUP = """
for name in lib lib64; do [ -e /$name ] || ln -s usr/$name /$name; done
mkdir -p /etc/alternatives
ln -s "$(readlink -f /usr/bin/awk)" /etc/alternatives/awk
mkdir /bin/own && ln -s /usr/bin/dash /bin/own/sh
ip link set lo up || ifconfig lo up
"""
RUN = "export PATH=/bin/own:/usr/bin:/usr/sbin:/bin:/sbin; cd /suite && dash ./ftracetest -k -l /tmp/logs"


def test_the_kernel_gives_the_results_that_the_page_says():
    suite_or_skip()
    kernel_or_skip("6.1-full")
    awk = Path("/usr/bin/awk").resolve()
    if not str(awk).startswith("/usr/") or not Path("/usr/bin/dash").exists():
        pytest.skip("no awk and dash below /usr to share with the guest")
    tests = those_that_need("control syntax", "trace_marker")
    shares = {"/usr": Path("/usr"), "/suite": SUITE}
    with lab_guest.boot("6.1-full", memory_mb=1024, shares=shares) as guest:
        guest.run(SETUP.replace('"$(readlink -f /usr/bin/awk)"', str(awk)), check=False)
        words = " ".join(f"test.d/{test}" for test in tests)
        said = guest.run(f"{RUN} {words}", timeout=500, check=False).text
    got = {int(m[1]): m[3] for m in RESULT.finditer(said) if not m[2]}
    assert [got.get(number) for number in range(1, len(tests) + 1)] == [
        listed()[test][0] for test in tests
    ], said
