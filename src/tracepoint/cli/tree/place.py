"""`tracepoint place`: add events to the source of a kernel, as a patch that is ready to send."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracepoint import __version__
from tracepoint.cli.authors import add_author_arguments, find_author, patch_file_name
from tracepoint.cli.files import read_text
from tracepoint.cli.status import EXIT_DONE
from tracepoint.cli.tree.place_check import check_series
from tracepoint.cli.tree.tree_files import tree_reader, write_files
from tracepoint.cli.tree.trees import default_tree, searching
from tracepoint.diagnostics import Severity
from tracepoint.errors import PlaceError, TreeError
from tracepoint.generate.fileset import FileSet
from tracepoint.place.fragment import EventText
from tracepoint.place.from_prototype import write_event
from tracepoint.place.kernel import KernelTree
from tracepoint.place.message import Author, write_cover, write_mail
from tracepoint.place.plan import Plan, make_call, make_places, read_plan, split_place
from tracepoint.place.series import make_series
from tracepoint.tree.facts import read_facts
from tracepoint.tree.index.scan import is_kernel_tree
from tracepoint.tree.makefiles import TREE_MARK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracepoint.cli.output import Output
    from tracepoint.place.series import Series
    from tracepoint.tree.query.tree import Tree

_COVER = "0000-cover-letter.patch"


class _PlaceOption(argparse.Action):
    """An option for the place of the last --at."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Start a place, or add to the last one."""
        places: list[dict[str, Any]] = [*(getattr(namespace, "places", None) or [])]
        if self.dest == "at":
            places.append({"at": values})
        elif not places:
            parser.error(f"{option_string} must come after its --at")
        else:
            value = self.const if values is None or values == [] else values
            if self.dest in places[-1]:
                parser.error(
                    f"{option_string} is given twice for {places[-1]['at']}; each place needs an --at"
                )
            places[-1] = {**places[-1], self.dest: value}
        namespace.places = places


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    parser.add_argument(
        "--tree", metavar="DIR", help="the kernel tree (default: the one here, or indexed last)"
    )
    parser.add_argument(
        "--plan", metavar="FILE", help="a TOML file with events and places instead of the options below"
    )
    _add_event_arguments(parser.add_argument_group("declarations (none for an existing event)"))
    _add_place_arguments(parser.add_argument_group("calls; begin each place with --at"))
    _add_patch_arguments(parser.add_argument_group("the patch"))
    parser.add_argument("--no-check", action="store_true", help="accept declarations with errors")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("-o", "--output", metavar="DIR", help="write the patches there (default: to stdout)")
    where.add_argument("--apply", action="store_true", help="change the files of the tree instead")
    parser.add_argument("--force", action="store_true", help="replace existing patches in DIR")


def _add_event_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--event",
        action="append",
        default=[],
        metavar="FILE",
        help="declarations, TRACE_EVENT() and the like; - is stdin; repeatable",
    )
    group.add_argument("--name", default="", help="or declare an event with this name from its parameters:")
    group.add_argument("--proto", default="", metavar="PARAMETERS", help="'struct folio *folio, int ret'")
    group.add_argument(
        "--fields",
        default="",
        metavar="LIST",
        help="'unsigned long pfn = folio_pfn(folio), int ret'; default: all plain values",
    )
    group.add_argument("--system", default="", help="their TRACE_SYSTEM, if the text has none")
    group.add_argument(
        "--header", default="", metavar="PATH", help="the trace header, if the system has several"
    )
    group.add_argument("--new-header", action="store_true", help="create the header if there is none")
    group.add_argument(
        "--creator", default="", metavar="PATH", help="the C file that creates the events of a new header"
    )
    group.add_argument(
        "--class", dest="class_name", default="", metavar="NAME", help="class for events with the same record"
    )


def _add_place_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--at", action=_PlaceOption, metavar="FILE:FUNCTION", help="mm/memory.c:do_swap_page")
    group.add_argument(
        "--entry", action=_PlaceOption, nargs=0, const=True, help="at the start of the function"
    )
    group.add_argument(
        "--returns", action=_PlaceOption, nargs=0, const=True, help="before each return, and at the end"
    )
    for word in ("before", "after"):
        group.add_argument(
            f"--{word}",
            action=_PlaceOption,
            nargs="?",
            const=True,
            metavar="STATEMENT",
            help=f"{word} the statement of this text, or the one on --line",
        )
    group.add_argument("--line", action=_PlaceOption, type=int, metavar="N", help="which of several, by line")
    group.add_argument(
        "--call", action=_PlaceOption, metavar="EVENT[(ARGS)]", help="the event to call, if there are several"
    )
    group.add_argument("--args", action=_PlaceOption, metavar="ARGS", help="C expressions for its parameters")
    group.add_argument(
        "--guard",
        action=_PlaceOption,
        nargs=0,
        const=True,
        help="guard with if (trace_x_enabled()); default: if the arguments are expensive",
    )
    group.add_argument("--no-guard", action=_PlaceOption, nargs=0, const=True, help="never")


def _add_patch_arguments(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--why", default="", metavar="TEXT", help="the reason (required); @FILE reads it from a file"
    )
    group.add_argument("--subject", default="", help="the subject line, without [PATCH]")
    add_author_arguments(group)
    group.add_argument("--one-patch", action="store_true", help="write one patch even for several subsystems")
    group.add_argument(
        "--export", action="store_true", help="EXPORT_TRACEPOINT_SYMBOL_GPL for the new events"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Write the patches, or change the tree."""
    plan = _plan(args)
    author = None if args.apply else find_author(args, plan.author)
    root = args.tree or default_tree(out)
    if not is_kernel_tree(os.path.realpath(root)):
        raise TreeError(root, f"not a kernel source tree ({TREE_MARK} is missing)")
    with searching(root, out) as tree:
        _place(tree, plan, author, args, out)
    return EXIT_DONE


def _place(tree: Tree, plan: Plan, author: Author | None, args: argparse.Namespace, out: Output) -> None:
    folder = Path(tree.root)
    facts = read_facts(folder)
    kernel = KernelTree(tree, tree_reader(folder), facts.assign_str_arity)
    series = make_series(kernel, plan, is_split=not args.one_patch)
    for note in series.notes:
        out.say(f"note: {note}")
    if not args.no_check:
        for finding in check_series(kernel, series, facts):
            tell = out.detail if finding.severity is Severity.NOTE else out.warn
            tell(str(finding))
    if author is None:
        before = {change.path: change.old for change in series.changes}
        write_files(folder, before, series.files)
        for path in series.files:
            out.line(path)
    else:
        _write(args, _mails(series, author), out)


def _write(args: argparse.Namespace, mails: Mapping[str, str], out: Output) -> None:
    if args.output:
        for written in FileSet(mails).write(args.output, overwrite=args.force):
            out.line(str(written))
        return
    # For `| git am`, which would stop at a mail without a patch.
    for name, text in mails.items():
        if name != _COVER:
            out.write(text)


def _plan(args: argparse.Namespace) -> Plan:
    places = getattr(args, "places", None) or []
    if args.plan:
        if args.event or args.name or places:
            raise PlaceError("a plan replaces --event, --name and --at")
        path = Path(args.plan)
        plan = read_plan(read_text(path), args.plan, lambda name: read_text(path.parent / name))
        return Plan(
            plan.events,
            plan.calls,
            args.subject or plan.subject,
            _why(args) or plan.why,
            plan.exports or args.export,
            args.author or plan.author,
        )
    texts = [(read_text(Path(name)), "<stdin>" if name == "-" else name) for name in args.event]
    if args.name:
        texts.append((write_event(args.name, args.proto, args.fields), f"--name {args.name}"))
    elif args.proto or args.fields:
        raise PlaceError("--proto and --fields need --name")
    events = [
        EventText(
            text,
            origin,
            args.system,
            args.header,
            args.class_name,
            args.new_header,
            args.creator,
        )
        for text, origin in texts
    ]
    return Plan(tuple(events), tuple(map(_call, places)), args.subject, _why(args), args.export, args.author)


def _call(chosen: dict[str, Any]) -> Any:
    path, function = split_place(chosen["at"])
    if chosen.get("guard") and chosen.get("no_guard"):
        raise PlaceError(f"{chosen['at']}: --guard and --no-guard contradict each other")
    guard = False if chosen.get("no_guard") else chosen.get("guard")
    return make_call(path, make_places(function, chosen), {**chosen, "guard": guard})


def _why(args: argparse.Namespace) -> str:
    why: str = args.why
    return read_text(Path(why[1:])) if why.startswith("@") else why


def _mails(series: Series, author: Author) -> dict[str, str]:
    """Return the patches by the names that git format-patch would use."""
    generator = f"tracepoint {__version__}"
    total = len(series.patches)
    mails = {}
    if total > 1:
        messages = [patch.message for patch in series.patches]
        mails[_COVER] = write_cover(series.cover, author, messages, series.changes, generator=generator)
    for number, patch in enumerate(series.patches, 1):
        mails[f"{number:04}-{patch_file_name(patch.message.subject)}.patch"] = write_mail(
            patch.message, author, patch.changes, number=number, total=total, generator=generator
        )
    return mails
