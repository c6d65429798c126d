"""Functions with call sites, made of text, for the tests of static keys."""

import types


def make(text, hit, name="run", **names):
    """Return what `name` is after running `text`, where `hit` and `holder.hit` are the tracepoint."""
    space = {"hit": hit, "holder": types.SimpleNamespace(hit=hit), **names}
    exec(compile(text, "<site>", "exec"), space)
    return space[name]


def heard(hit, action):
    """Return what the tracepoint is called with while `action` runs."""
    seen = []
    with hit.register(lambda n, m: seen.append((n, m))):
        action()
    return seen
