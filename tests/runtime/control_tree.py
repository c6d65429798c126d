"""Events made from `format` texts, and the answers of control files."""

from types import SimpleNamespace

from tracepoint.runtime.event_control import EventControl


class Silent:
    """The tracepoint of an event that is only there to be switched."""

    def set_entries(self, entries):
        self.entries = entries


def declare_format(form, tracing):
    """Put an event that a `format` file describes into a hierarchy; it cannot be fired."""
    event = SimpleNamespace(
        full_name=f"{form.system}:{form.name}",
        name=form.name,
        system=form.system,
        proto=SimpleNamespace(names=()),
    )
    control = EventControl(event, SimpleNamespace(format=form), tracing, hints={}, where="")
    control.tracepoint = Silent()
    tracing.add(control)
    return control


def answer(action):
    """Return the log's words for what an action answers."""
    try:
        action()
    except OSError as error:
        return f"ERR {error.strerror}"
    return "ok"
