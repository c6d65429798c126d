"""What a script needs to fire events in a process of its own."""

PRELUDE = """
import os, sys, threading, time
sys.path.insert(0, {source!r})
core_path = {core!r}
if core_path:
    import importlib.machinery, importlib.util
    loader = importlib.machinery.ExtensionFileLoader("tracepoint._core", core_path)
    spec = importlib.util.spec_from_loader("tracepoint._core", loader)
    sys.modules["tracepoint._core"] = module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
from tracepoint.runtime.declare.event import trace_event, tracing
from tracepoint.runtime.fire.mechanism import IS_PURE
assert IS_PURE is (not core_path)
from tracepoint.model.python.types import u64

@trace_event(system="proc", printk='"%llu %s", n, name')
def step(n: u64, name: str) -> None: ...
"""
