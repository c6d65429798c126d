"""The whole tree of control files of this process: what tracefs is for a kernel.

`ControlFiles(tracing)` answers open, read, write, mkdir and rmdir as tracefs does, in memory; a
mount and a socket serve it.
"""

from __future__ import annotations

import errno
import os
from functools import cache
from typing import TYPE_CHECKING

from tracepoint.errors import TracepointError
from tracepoint.runtime.dynamic.dynamic_events import dynamic_file
from tracepoint.runtime.dynamic.synthetic import synthetic_file
from tracepoint.runtime.files.events import events_folder, pid_file, set_event_file
from tracepoint.runtime.files.file import (
    File,
    FileTree,
    Folder,
    Handle,
    failure,
    fixed_folder,
    made_folder,
    number_file,
    text_file,
)
from tracepoint.runtime.files.settings import (
    clock_file,
    cpumask_file,
    marker_file,
    options_folder,
    options_text_file,
    raw_marker_file,
    size_file,
    sub_buffer_size_file,
    total_size_file,
    tracing_on_file,
)
from tracepoint.runtime.files.state import InstanceState, count_possible_cpus
from tracepoint.runtime.files.texts import NOT_INHERITED, README
from tracepoint.runtime.files.trace import pipe_file, raw_file, snapshot_file, stats_text, trace_file
from tracepoint.runtime.hierarchy import tracing

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracepoint.runtime.files.file import Node
    from tracepoint.runtime.hierarchy import Instance, Tracing

ROOT_MODE = 0o700
MAX_CMDLINES = 1 << 15
MAX_NAME = 255


class _Counted(Handle):
    """An open file of an instance, which cannot go while it is open."""

    def __init__(self, inner: Handle, state: InstanceState) -> None:
        self._inner = inner
        self._state = state
        self.has_end = inner.has_end
        state.n_open += 1

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def read(self, size: int, offset: int) -> bytes:
        return self._inner.read(size, offset)

    def write(self, data: bytes) -> int:
        return self._inner.write(data)

    def close(self) -> None:
        self._state.n_open -= 1
        self._inner.close()


class ControlFiles(FileTree):
    """The control files of a hierarchy.

    `n_cpus` is how many CPUs per_cpu shows; the machine's without it.
    """

    def __init__(self, tracing: Tracing, n_cpus: int = 0) -> None:
        self.tracing = tracing
        self.n_cpus = n_cpus or count_possible_cpus()
        self._states: dict[Instance, InstanceState] = {}
        self._cmdlines = 6552
        self._added: dict[str, Callable[[], str]] = {}
        super().__init__(self._root())

    def add_text(self, name: str, get: Callable[[], str]) -> None:
        """Show a read-only file beside those of tracefs; an added one of the same name is replaced."""
        self._added[name] = get

    def state_of(self, instance: Instance) -> InstanceState:
        """Return what the files know of an instance."""
        state = self._states.get(instance)
        if state is None:
            state = self._states[instance] = InstanceState(self.tracing, instance, self.n_cpus)
            if instance is not self.tracing:
                inherited = self.state_of(self.tracing).options | dict.fromkeys(NOT_INHERITED, False)
                state.options = inherited | {"overwrite": bool(instance.buffer.overwrite)}
        return state

    def open(self, path: str, flags: int = os.O_RDONLY) -> Handle:
        """Open a file; see `Tree.open`."""
        handle = super().open(path, flags)
        parts = [part for part in path.split("/") if part]
        if parts[0] == "instances" and len(parts) > 2:
            return _Counted(handle, self.state_of(self.tracing.instances[parts[1]]))
        return handle

    def _root(self) -> Folder:
        state = self.state_of(self.tracing)
        files: dict[str, Callable[[], Node]] = {
            "README": lambda: text_file(lambda: README),
            "available_events": lambda: text_file(self._available),
            "instances": self._instances,
            "printk_formats": lambda: text_file(lambda: ""),
            "saved_cmdlines": lambda: text_file(self._comms),
            "saved_cmdlines_size": lambda: number_file(lambda: self._cmdlines, self._set_cmdlines),
            "saved_tgids": lambda: text_file(self._tgids),
            "dynamic_events": lambda: dynamic_file(state),
            "synthetic_events": lambda: synthetic_file(state),
            **_instance_files(state),
        }
        folder = made_folder(dict(sorted(files.items())))

        def child(name: str) -> Node | None:
            get = self._added.get(name)
            return folder.child(name) if get is None else text_file(get)

        return Folder(lambda: [*folder.names(), *self._added], child, mode=ROOT_MODE)

    def _available(self) -> str:
        return "".join(f"{event.full_name}\n" for event in reversed(self.tracing.events))

    def _all_comms(self) -> dict[int, str]:
        found: dict[int, str] = {}
        for instance in (self.tracing, *self.tracing.instances.values()):
            found.update(self.state_of(instance).comms())
        return found

    def _comms(self) -> str:
        return "".join(f"{tid} {comm}\n" for tid, comm in self._all_comms().items())

    def _tgids(self) -> str:
        arrays = (self.tracing, *self.tracing.instances.values())
        if not any(self.state_of(array).options["record-tgid"] for array in arrays):
            return ""
        return "".join(f"{tid} {os.getpid()}\n" for tid in self._all_comms())

    def _set_cmdlines(self, value: int) -> None:
        if not 1 <= value <= MAX_CMDLINES:
            raise failure(errno.EINVAL)
        self._cmdlines = value

    def _instances(self) -> Folder:
        instances = self.tracing.instances

        def child(name: str) -> Folder | None:
            made = instances.get(name)
            return made_folder(_instance_files(self.state_of(made))) if made is not None else None

        def mkdir(name: str) -> None:
            if len(os.fsencode(name)) > MAX_NAME:
                raise failure(errno.ENAMETOOLONG, name)
            try:
                overwrite = self.state_of(self.tracing).options["overwrite"]
                self.state_of(self.tracing.make_instance(name, overwrite=overwrite))
            except TracepointError as error:
                raise failure(getattr(error, "errno", errno.EINVAL), name) from None

        def rmdir(name: str) -> None:
            if name not in instances:
                raise failure(errno.ENOENT, name)
            state = self.state_of(instances[name])
            if state.n_open:
                raise failure(errno.EBUSY, name)
            for triggers in state.triggers.values():
                triggers.remove_all()
            self.tracing.remove_instance(name)
            self._states.pop(state.instance, None)

        return Folder(lambda: list(instances), child, mkdir, rmdir)


@cache
def process_files() -> ControlFiles:
    """Return the control files of this process: one tree, so that its options hold wherever it is shown."""
    return ControlFiles(tracing)


def _instance_files(state: InstanceState) -> dict[str, Callable[[], Node]]:
    """Return the files that every instance has."""
    return {
        "available_tracers": lambda: text_file(lambda: "nop\n"),
        "buffer_percent": lambda: number_file(lambda: state.wake_percent, state.set_wake_percent),
        "buffer_size_kb": lambda: size_file(state, has_hint=True),
        "buffer_subbuf_size_kb": sub_buffer_size_file,
        "buffer_total_size_kb": lambda: total_size_file(state),
        "current_tracer": _tracer_file,
        "error_log": lambda: File(
            lambda: state.instance.error_log,
            lambda _: state.instance.clear_error_log(),
            state.instance.clear_error_log,
        ),
        "events": lambda: events_folder(state),
        "options": lambda: options_folder(state),
        "per_cpu": lambda: _per_cpu(state),
        "set_event": lambda: set_event_file(state),
        "set_event_notrace_pid": lambda: pid_file(state, is_hidden=True),
        "set_event_pid": lambda: pid_file(state, is_hidden=False),
        "snapshot": lambda: snapshot_file(state),
        "timestamp_mode": lambda: text_file(lambda: "[delta] absolute\n"),
        "trace": lambda: trace_file(state),
        "trace_clock": lambda: clock_file(state),
        "trace_marker": lambda: marker_file(state),
        "trace_marker_raw": lambda: raw_marker_file(state),
        "trace_options": lambda: options_text_file(state),
        "trace_pipe": lambda: pipe_file(state),
        "tracing_cpumask": lambda: cpumask_file(state),
        "tracing_on": lambda: tracing_on_file(state),
    }


def _tracer_file() -> File:
    def write(data: bytes) -> None:
        if data.strip() != b"nop":
            raise failure(errno.EINVAL)

    return File(lambda: "nop\n", write)


def _per_cpu(state: InstanceState) -> Folder:
    def cpu_folder(cpu: int) -> Folder:
        return fixed_folder(
            {
                "buffer_size_kb": size_file(state, has_hint=False),
                "snapshot": snapshot_file(state, cpu),
                "stats": text_file(lambda: stats_text(state, cpu)),
                "trace": trace_file(state, cpu),
                "trace_pipe": pipe_file(state, cpu),
                "trace_pipe_raw": raw_file(state, cpu),
            }
        )

    names = {f"cpu{cpu}": cpu for cpu in range(state.n_cpus)}
    return Folder(lambda: list(names), lambda name: cpu_folder(names[name]) if name in names else None)
