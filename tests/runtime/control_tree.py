"""A control tree over an own hierarchy for each test, and events made from `format` texts."""

import importlib
import sys
from types import SimpleNamespace

MODULES = (
    "bridges.log_records",
    "remote.client",
    "remote.server",
    "dynamic.dynamic_events",
    "dynamic.event_probe",
    "files.events",
    "files.settings",
    "files.state",
    "files.trace",
    "files.tree",
    "triggers.hist",
    "triggers.hist_text",
    "remote.mount",
    "remote.registry",
    "rings.save",
    "dynamic.synthetic",
    "fire.tap",
    "files.text_writer",
    "triggers.trigger",
)


def load(monkeypatch):
    """Return `files.tree`, imported again over the hierarchy that the fixture `runtime` made."""
    for name in MODULES:
        monkeypatch.delitem(sys.modules, f"tracepoint.runtime.{name}", raising=False)
    return importlib.import_module("tracepoint.runtime.files.tree")


class Silent:
    """The tracepoint of an event that is only there to be switched."""

    def set_entries(self, entries):
        self.entries = entries


def declare_format(form):
    """Put an event that a `format` file describes into the hierarchy; it cannot be fired."""
    hierarchy = sys.modules["tracepoint.runtime.hierarchy"]
    event = SimpleNamespace(
        full_name=f"{form.system}:{form.name}",
        name=form.name,
        system=form.system,
        proto=SimpleNamespace(names=()),
    )
    control = hierarchy.EventControl(event, SimpleNamespace(format=form), hints={}, where="")
    control.tracepoint = Silent()
    hierarchy.tracing.add(control)
    return control


def answer(action):
    """Return the log's words for what an action answers."""
    try:
        action()
    except OSError as error:
        return f"ERR {error.strerror}"
    return "ok"
