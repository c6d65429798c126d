"""The files around a header: the nearest that answers is the last one looked into."""

import pytest

from tracepoint.source import closure
from tracepoint.source.closure import IncludeClosure, SharedFiles
from tracepoint.source.environment import Environment
from tracepoint.source.preprocess import Preprocessed, preprocess
from tracepoint.source.text import SourceFile

FILES = {
    "near.h": '#include "middle.h"\n/* #define COMMENTED 1 */ enum near { NEAR = 4 };\n',
    "middle.h": '#include "far.h"\n  #  define MIDDLE (NEAR + 1)\ntypedef unsigned int middle_t;\n',
    "far.h": "#define FAR 3\nenum { /* } */ BEHIND_BRACE, // }\n BEHIND_LINE };\n",
    "typedefs.h": (
        "/* a typedef for\\n * this enum is in a comment */\nenum after_comment { AFTER_COMMENT };\ntypedef enum { NAMELESS = 7 } kind_t;\n"
        "typedef int (*call_t)(int);\ntypedef struct { enum { INSIDE } a; int b; } own_t;\n"
    ),
    "creator.h": "#define CREATOR 9\n",
}


class Files:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def load(self, name: str, *, is_quoted: bool, includer: str) -> SourceFile | None:
        assert is_quoted
        assert includer
        self.asked.append(name)
        return SourceFile(name, FILES[name]) if name in FILES else None


def environment(files: Files, shared: SharedFiles | None = None) -> Environment:
    around = IncludeClosure(files, [("near.h", True, "a.h")], shared, more=[("creator.h", True, "a.c")])
    return Environment(closure=around, shared=shared)


@pytest.mark.parametrize(
    ("name", "value", "asked"),
    [
        ("NEAR", 4, ["near.h", "middle.h"]),
        ("MIDDLE", 5, ["near.h", "middle.h", "far.h"]),
        ("middle_t", None, ["near.h", "middle.h", "far.h"]),
        ("FAR", 3, ["near.h", "middle.h", "far.h"]),
        ("BEHIND_LINE", 1, ["near.h", "middle.h", "far.h"]),
        ("CREATOR", 9, ["near.h", "middle.h", "far.h", "creator.h"]),
        ("NOWHERE", None, ["near.h", "middle.h", "far.h", "creator.h"]),
    ],
)
def test_a_name_is_looked_for_as_far_as_it_has_to_be(name: str, value: int | None, asked: list[str]) -> None:
    files = Files()
    assert environment(files).constant(name) == value
    assert files.asked == asked


def test_files_that_two_headers_include_are_looked_into_once() -> None:
    files, shared = Files(), SharedFiles()
    for _ in range(3):
        around = environment(files, shared)
        assert around.constant("FAR") == 3
        assert around.typedef("middle_t") == "unsigned int"
        assert around.is_enumerator("BEHIND_BRACE")
        assert not around.is_enumerator("MIDDLE")
    assert [name for name in files.asked if name != "near.h"] == ["middle.h", "far.h"]


def test_enums_and_names_of_typedefs_are_found_however_they_are_declared() -> None:
    around = Environment(closure=IncludeClosure(Files(), [("typedefs.h", True, "a.h")]))
    assert [around.constant(name) for name in ("AFTER_COMMENT", "NAMELESS", "INSIDE")] == [0, 7, 0]
    assert around.enum_members("after_comment") == {"AFTER_COMMENT": 0}
    assert around.typedef("call_t") == "void *"
    found = around.struct("own_t")
    assert found is not None
    assert [member.name for member in found.members] == ["a", "b"]


def test_endless_words_are_read_once() -> None:
    text = "enum " * 20_000 + "typedef " * 20_000 + "#define " * 20_000
    closure = IncludeClosure(_One(text), [("one.h", True, "a.h")])
    assert list(closure.holding("x")) == []


class _One:
    def __init__(self, text: str) -> None:
        self._file = SourceFile("one.h", text)

    def load(self, name: str, *, is_quoted: bool, includer: str) -> SourceFile | None:
        del is_quoted, includer
        return self._file if name == "one.h" else None


def test_a_file_asked_for_many_types_is_preprocessed_once_while_there_is_room(monkeypatch) -> None:
    read: list[str] = []

    def counted(file: SourceFile, **options: object) -> Preprocessed:
        read.append(file.path)
        return preprocess(file, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("tracepoint.source.environment.preprocess", counted)
    near = "".join(f"struct s{n} {{ int a{n}; }};\n" for n in range(20))
    monkeypatch.setitem(FILES, "near.h", f'#include "far.h"\n{near}')
    monkeypatch.setitem(FILES, "far.h", "struct far { int b; }; struct further { int c; };\n")
    around = environment(Files())
    for name in [*(f"struct s{n}" for n in range(20)), "struct far"]:
        body = around.struct(name)
        assert body is not None
        assert len(body.members) == 1
    assert read == ["near.h", "far.h"]
    monkeypatch.setattr(closure, "MAX_KEPT_TOKENS", 1)
    around = environment(Files())
    assert all(around.struct(name) for name in ("struct s1", "struct s2", "struct far", "struct s3"))
    assert read == ["near.h", "far.h", "near.h", "far.h", "near.h"]


STRUCTS = {
    "near.h": '#include "far.h"\n/* struct near; */ struct a *f(struct far *x) { return 0; }\n',
    "far.h": (
        "/* This struct far, with a member. */\nstruct far { int a; };\n"
        "union __packed both { int a; long b; } __aligned(8);\n"
        "struct marked\n\t__attribute__((packed, aligned(sizeof(void *)))) { struct inner { int a; } b; };\n"
        "typedef struct { int a[2]; } own_t;\ntypedef struct far_s { int a; } __packed\n\tmarked_t ;\n"
    ),
}


@pytest.mark.parametrize(
    "name",
    ["struct far", "union both", "struct marked", "struct inner", "own_t", "struct far_s", "marked_t"],
)
def test_structs_are_found_whatever_marks_them(name: str) -> None:
    assert around_structs(SharedFiles()).struct(name) is not None


@pytest.mark.parametrize("name", ["struct near", "struct a", "union far", "a", "b"])
def test_what_no_file_defines_is_not_found(name: str) -> None:
    assert around_structs(SharedFiles()).struct(name) is None


def test_files_are_searched_for_structs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    original = closure._struct_names
    monkeypatch.setattr(closure, "_struct_names", lambda text: searched.append(text) or original(text))
    shared = SharedFiles()
    for name in ("struct far", "own_t", "struct nowhere"):
        around_structs(shared).struct(name)
    assert searched == list(STRUCTS.values())


def around_structs(shared: SharedFiles) -> Environment:
    class Structs:
        def load(self, name: str, *, is_quoted: bool, includer: str) -> SourceFile | None:
            return SourceFile(name, STRUCTS[name])

    return Environment(closure=IncludeClosure(Structs(), [("near.h", True, "a.h")], shared), shared=shared)
