"""The arguments of a call: C expressions, the names in them, and what evaluating them costs."""

from __future__ import annotations

from dataclasses import dataclass

from tracepoint.errors import PlaceError, SourceError
from tracepoint.named import NamedTuple
from tracepoint.source import ast
from tracepoint.source.brackets import match_brackets, split_macro_arguments
from tracepoint.source.cexpr import parse_expression
from tracepoint.source.lexer import Kind, lex
from tracepoint.source.text import SourceFile

#: Macros with the name of a member as an argument, and the index of that argument.
_MEMBER_ARGUMENT = {
    **dict.fromkeys("offsetof offsetofend sizeof_field typeof_member struct_size flex_array_size".split(), 1),
    **dict.fromkeys("list_next_entry list_prev_entry struct_size_t".split(), 1),
    **dict.fromkeys("container_of container_of_const list_entry list_first_entry list_last_entry".split(), 2),
    **dict.fromkeys("list_first_entry_or_null list_entry_rcu list_first_or_null_rcu hlist_entry".split(), 2),
    **dict.fromkeys("hlist_entry_safe hlist_nulls_entry llist_entry rb_entry rb_entry_safe".split(), 2),
}
#: The step `[...]` of an access.
INDEX = "[]"
#: Calls that are cheap enough without `if (trace_x_enabled())`: a few instructions, no lock, no loop.
_CHEAP = frozenset(
    "READ_ONCE WRITE_ONCE container_of container_of_const offsetof likely unlikely IS_ERR IS_ERR_OR_NULL "
    "PTR_ERR ERR_PTR ERR_CAST PTR_ERR_OR_ZERO IS_ENABLED BIT BIT_ULL GENMASK min max min_t max_t clamp "
    "clamp_t abs lower_32_bits upper_32_bits ARRAY_SIZE round_up round_down roundup rounddown ALIGN "
    "DIV_ROUND_UP page_to_pfn pfn_to_page page_folio folio_page folio_pfn folio_nid folio_order folio_index "
    "page_to_nid page_private compound_order folio_nr_pages folio_size folio_pos page_offset page_zone "
    "folio_zone zone_idx zone_to_nid page_zonenum virt_to_page page_address __pa __va __phys_to_pfn PFN_PHYS "
    "PHYS_PFN PFN_DOWN PFN_UP smp_processor_id raw_smp_processor_id task_cpu cpu_of task_pid_nr "
    "task_tgid_nr current_uid from_kuid in_interrupt in_task preempt_count irqs_disabled test_bit "
    "atomic_read atomic64_read atomic_long_read refcount_read swp_type swp_offset "
    "pte_val pmd_val pud_val pgd_val pgprot_val "
    "rcu_dereference rcu_dereference_raw rcu_access_pointer list_empty sizeof_field be16_to_cpu be32_to_cpu "
    "be64_to_cpu le16_to_cpu le32_to_cpu le64_to_cpu cpu_to_be16 cpu_to_be32 cpu_to_be64 cpu_to_le16 "
    "cpu_to_le32 cpu_to_le64 ntohs ntohl htons htonl file_inode d_inode i_size_read user_mode "
    "instruction_pointer virt_to_phys ktime_to_ns bio_sectors bio_op bio_offset blk_rq_pos blk_rq_bytes "
    "req_op dev_name __builtin_expect ilog2 order_base_2 typecheck MAJOR MINOR MKDEV BTRFS_I EXT4_I XFS_I "
    "BITS_TO_LONGS cpumask_test_cpu".split()
)


class Access(NamedTuple):
    """`name->a[1].b` as `name` and its steps: a member and whether it follows `->`, or INDEX."""

    name: str
    steps: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: its text with single spaces, its tree, the names of values and of called functions.

    `accesses` are the members that are accessed from plain names, `addressed` the names whose
    address alone is taken.
    """

    text: str
    tree: ast.Node
    names: tuple[str, ...]
    called: tuple[str, ...]
    accesses: tuple[Access, ...]
    addressed: frozenset[str] = frozenset()

    @property
    def costly(self) -> str:
        """The first call that is not known to be cheap, empty when there is none."""
        return next((name for name in self.called if name not in _CHEAP), "")

    @property
    def plain(self) -> str:
        """The name if the argument is just a name, else empty."""
        return self.tree.name if isinstance(self.tree, ast.Name) else ""

    @property
    def access(self) -> Access | None:
        """The access if the argument is just an access, else None."""
        return _access(self.tree)


def read_argument(text: str, type_names: frozenset[str]) -> Argument:
    """Read an argument; `type_names` are typedefs that a cast may name.

    Raises PlaceError when it is not an expression, or has a side effect.

    >>> found = read_argument("page_count( page ) + vma->vm_mm->x", frozenset())
    >>> found.text, found.names, found.called
    ('page_count( page ) + vma->vm_mm->x', ('page', 'vma'), ('page_count',))
    >>> found.accesses
    (Access(name='vma', steps=(('vm_mm', True), ('x', True))),)
    """
    spelled = " ".join(text.split())
    if "//" in spelled or "/*" in spelled or "\0" in spelled:
        raise PlaceError(f"the argument `{spelled[:60]}` contains a comment")
    try:
        tree = parse_expression(spelled, type_names=type_names)
    except SourceError as error:
        raise PlaceError(f"the argument `{spelled[:60]}` is not a C expression: {error.message}") from None
    names: list[str] = []
    called: list[str] = []
    accesses: list[Access] = []
    for node in ast.walk(tree, _used):
        if isinstance(node, ast.Comma):
            raise PlaceError(f"the argument `{spelled[:60]}` contains a comma: give each argument separately")
        _check_effect(node, spelled)
        if isinstance(node, ast.Name):
            names.append(node.name)
        elif isinstance(node, ast.Call) and node.name:
            called.append(node.name)
        elif isinstance(node, ast.Member):
            found = _access(node)
            is_part = found and any(
                known[0] == found[0] and known[1][: len(found[1])] == found[1] for known in accesses
            )
            accesses += [found] if found and not is_part else []
    taken = [name for node in ast.walk(tree, _used) if (name := _addressed(node))]
    addressed = frozenset(name for name in taken if taken.count(name) == names.count(name))
    return Argument(spelled, tree, tuple(dict.fromkeys(names)), tuple(called), tuple(accesses), addressed)


def split_text(text: str, refused: frozenset[str]) -> tuple[str, ...] | None:
    """Split a text at the commas outside parentheses.

    None when brackets do not match, a part is empty, or there are `refused` tokens or ones that are not C.
    """
    try:
        tokens = lex(SourceFile("<arguments>", text))[:-1]
    except SourceError as error:
        raise PlaceError(str(error)) from None
    parts = split_macro_arguments(tokens)
    is_odd = any(token.kind is Kind.BAD or token.text in refused for token in tokens)
    if is_odd or match_brackets(tokens)[1] is not None or not all(parts):
        return None
    return tuple(text[part[0].start : part[-1].end] for part in parts)


def _addressed(node: ast.Node) -> str:
    """Return the variable `x` of `&x` or `&x.y`."""
    if not isinstance(node, ast.Unary) or node.op != "&":
        return ""
    inner = node.operand
    while isinstance(inner, ast.Member) and not inner.is_arrow:
        inner = inner.base
    return inner.name if isinstance(inner, ast.Name) else ""


def _access(node: ast.Node) -> Access | None:
    """Return the access that a chain of `->`, `.` and `[]` on a plain name makes, or None."""
    steps: list[tuple[str, bool]] = []
    while isinstance(node, (ast.Member, ast.Index)):
        steps.append((node.name, node.is_arrow) if isinstance(node, ast.Member) else (INDEX, False))
        node = node.base
    return Access(node.name, tuple(reversed(steps))) if isinstance(node, ast.Name) and steps else None


def _check_effect(node: ast.Node, text: str) -> None:
    """Refuse anything that changes the program only while it is traced."""
    if isinstance(node, ast.StatementExpression):
        raise PlaceError(
            f"the argument `{text[:60]}` contains statements, which run only while the event is enabled"
        )
    if isinstance(node, ast.Assign) or (
        isinstance(node, ast.Unary) and node.op in {"++", "--", "p++", "p--"}
    ):
        raise PlaceError(f"the argument `{text[:60]}` changes a value, and only while the event is enabled")


def _used(node: ast.Node) -> tuple[ast.Node, ...]:
    """Return the operands of a node without the names of members that some macros take."""
    found = ast.operands(node)
    member_at = _MEMBER_ARGUMENT.get(node.name, -1) if isinstance(node, ast.Call) else -1
    return found if member_at < 0 else found[:member_at] + found[member_at + 1 :]
