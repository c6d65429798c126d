"""What tests ask of all modules of a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tracepoint.lab.kernels.modules import ModuleInfo, ModuleTree


def with_events(tree: ModuleTree) -> list[ModuleInfo]:
    """Return the modules with trace events (reads every module: some seconds)."""
    return [info for info in map(tree.info, tree) if info.has_events]


def write_depmod(tree: ModuleTree, folder: Path | None = None) -> Path:
    """Write `modules.dep` and `modules.alias` for modprobe into `folder` (default: the tree's); return it."""
    folder = folder or tree.folder
    lines: list[str] = []
    aliases: list[str] = []
    for name in tree:
        info = tree.info(name)
        needs = [path for path in reversed(tree.load_order((name,))) if path != info.path]
        paths = [str(path.relative_to(tree.folder)) for path in (info.path, *needs)]
        lines.append(f"{paths[0]}: {' '.join(paths[1:])}".rstrip())
        aliases.extend(f"alias {alias} {name}" for alias in info.aliases)
    (folder / "modules.dep").write_text("\n".join(lines) + "\n")
    (folder / "modules.alias").write_text("\n".join(aliases) + "\n")
    return folder
