"""Members of structs that headers of the tree define: known, refused with a suggestion, or noted."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from place.trees import SHORE_C, make_tree, open_kernel
from tracepoint.errors import PlaceError
from tracepoint.place.insert import EventCall, InsertionPoint, Where, place_call
from tracepoint.place.structs import Structs
from tracepoint.source.text import SourceFile

DUCK = """\
#include <linux/nest.h>
#include <asm/beak.h>
/* struct duck { int comment; }; */
#define DUCK_COMMON int colour; struct nest *home
#define duck_weight body.grams
#define goose duck
struct egg;
struct __packed duck {
	int depth;
	const struct {
		struct duck *mother;
	};
	union {
		long wide;
		struct { short low, high; } parts;
	} feet[2];
	struct { unsigned int grams; } body;
	struct_group(trip, u8 from; u8 to;);
	DECLARE_BITMAP(feathers, 100);
	int (*quack)(struct duck *);
	struct list_head list ____cacheline_aligned_in_smp;
	struct nest_age old __duck_align;
#ifdef CONFIG_POND_FROGS
	struct frog *friend;
#else
	int friend;
#endif
	DUCK_COMMON;
	struct beak beak;
	struct nest_base;
	struct egg *egg;
	struct odd *odd;
	frog_t frog;
};
typedef struct nest nest_t;
struct odd { ODD_FIELDS(a) };
"""
NEST = """\
#define __duck_align __aligned(8)
#define nest_height(nest) 1
extern int nest_limit, nest_table[4];
DECLARE_PER_CPU(int, nest_count);
enum nest_kind { nest_round, nest_deep };
static inline int nest_eggs(struct nest *lost)
{
	return lost->n_eggs;
}
struct nest_base { int height; };
struct nest { struct duck *owner; int n_eggs; };
struct nest_age { int years; };
typedef struct { int legs; } frog_t;
"""
SHORE = SHORE_C.replace("int n)", "int n, nest_t *nest, struct goose *goose, struct duck **all)")
KNOWN = [
    "duck->depth", "duck->mother->mother->depth", "duck->feet[1].parts.low", "duck->duck_weight", "duck->from",
    "duck->trip.to", "duck->feathers", "duck->quack(duck)", "duck->list.next", "duck->old", "duck->colour",
    "duck->home->owner->home->n_eggs", "duck->height", "nest->n_eggs", "goose->depth", "all[n]->depth",
    "(*all)->depth", "duck->friend", "container_of(&duck->list, struct duck, list)->depth", "current->depth",
    "struct_size(duck, feathers, n)", "nest_limit", "nest_table[1]", "this_cpu_read(nest_count)", "nest_deep",
    "nest_eggs(nest)", "nest_height(nest)", "duck[0].depth", "duck->frog.legs",
]  # fmt: skip
WRONG = {
    "duck->dept": "struct duck (include/linux/pond.h) has no member `dept`; did you mean `depth`?",
    "duck->comment": "has no member `comment`",
    "duck->grams": "has no member `grams`",
    "duck->low": "has no member `low`",
    "duck->mother->mothr": "did you mean `mother`?",
    "duck->feet[1].parts.lo": "the struct `duck->feet[].parts` has no member `lo`; did you mean `low`?",
    "duck->home->eggs": "struct nest (include/linux/nest.h) has no member `eggs`; did you mean `n_eggs`?",
    "duck->body->grams": "`duck->body` is `struct`: use `.` for its members",
    "duck->home.n_eggs": "`duck->home` is `struct nest *`: use `->` for its members",
    "duck->depth->x": "`duck->depth` is an integer (int) and has no member `x`",
    "lost": "`lost` in the argument `lost` is not declared",
    "nest_limt": "`nest_limt` in the argument `nest_limt` is not declared",
    "duck->hight": "did you mean `height`?",
    "nest->n_egg": "did you mean `n_eggs`?",
    "nest.n_eggs": "`nest` is `nest_t *`: use `->` for its members",
    "goose->dept": "did you mean `depth`?",
    "all->depth": "`all` is `struct duck **`: it has no members",
    "n_visits + duck->dept": "did you mean `depth`?",
}  # fmt: skip
NOTED = {
    "duck->beak.x": "struct beak (arch/x86/include/asm/beak.h) has a member `x` is not known: "
    "arch/x86/include/asm/beak.h is only one of several architectures",
    "duck->egg->x": "struct egg has a member `x` is not known from water/shore.c and what it includes",
    "duck->odd->x": "has a member `x` is not known: the macro ODD_FIELDS() in include/linux/pond.h is not",
}


@pytest.fixture(scope="module")
def structs(tmp_path_factory: pytest.TempPathFactory) -> Structs:
    files = {
        "include/linux/pond.h": DUCK,
        "include/linux/nest.h": NEST,
        "include/linux/kernel.h": "struct list_head { struct list_head *next, *prev; };\n"
        "struct task_struct { int depth; };\n",
        "arch/x86/include/asm/beak.h": "struct beak { int length; };\n",
        "water/shore.c": SHORE,
    }
    kernel = open_kernel(make_tree(tmp_path_factory.mktemp("tree"), files))
    return Structs(kernel.source("water/shore.c"), kernel)


def notes(structs: Structs, argument: str, kind: str = "") -> tuple[str, ...]:
    source = SourceFile("water/shore.c", SHORE)
    params = ((kind, "p"),) if kind else ()
    call = EventCall("x", (argument,), guard=False, params=params)
    return place_call(source, InsertionPoint("shore_visit", Where.AFTER, "n_visits++;"), call, structs).notes


@pytest.mark.parametrize("argument", KNOWN)
def test_members_that_headers_tell_are_silent(structs: Structs, argument: str) -> None:
    there = "container_of", "struct_size", "this_cpu_read"
    told = [note for note in notes(structs, argument) if not note.startswith(there)]
    assert told == []


@pytest.mark.parametrize("argument", WRONG)
def test_members_that_are_not_there_are_refused(structs: Structs, argument: str) -> None:
    with pytest.raises(PlaceError) as caught:
        notes(structs, argument)
    assert WRONG[argument] in caught.value.reason


@pytest.mark.parametrize("argument", NOTED)
def test_members_that_cannot_be_told_are_noted(structs: Structs, argument: str) -> None:
    assert any(NOTED[argument] in note for note in notes(structs, argument))


def test_a_function_that_no_header_declares_is_noted(structs: Structs) -> None:
    (note,) = notes(structs, "nest_weight(nest)")
    assert note == "nest_weight() is not declared in any include of water/shore.c: is its header included?"


def test_types_of_members_are_compared_with_the_prototype(structs: Structs) -> None:
    assert notes(structs, "duck->home", "struct nest *") == ()
    assert notes(structs, "duck->friend", "struct nest *") == ()  # two types, in branches of an #if
    with pytest.raises(PlaceError, match="`duck->home` is `struct nest \\*`"):
        notes(structs, "duck->home", "struct duck *")


def test_the_headers_of_the_files_own_architecture_count(tmp_path: Path) -> None:
    files = {
        "arch/arm64/include/asm/beak.h": "struct beak { int width; };\n",
        "arch/x86/include/asm/beak.h": "struct beak { int length; };\n",
        "arch/arm64/mm/a.c": "#include <asm/beak.h>\n",
        "include/asm-generic/wing.h": "struct wing { int span; };\n",
    }
    kernel = open_kernel(make_tree(tmp_path, files))
    found = Structs(kernel.source("arch/arm64/mm/a.c"), kernel).find("struct", "beak")
    assert found is not None
    assert (list(found.body.members), found.path, found.doubt) == (
        ["width"],
        "arch/arm64/include/asm/beak.h",
        "",
    )


def test_a_file_that_another_one_includes_knows_what_that_one_does(tmp_path: Path) -> None:
    files = {
        "water/all.c": '#include <linux/pond.h>\n#include "part.c"\n',
        "water/part.c": "void f(struct duck *duck)\n{\n}\n",
        "water/Makefile": "obj-y := all.o\n",
        "water/extra/deep.h": "struct deep { int metres; };\n",
    }
    kernel = open_kernel(make_tree(tmp_path, files))
    found = Structs(kernel.source("water/part.c"), kernel).find("struct", "duck")
    assert found is not None
    assert found.path == "include/linux/pond.h"


def test_folders_that_the_makefile_adds_are_searched(tmp_path: Path) -> None:
    files = {
        "water/Makefile": "ccflags-y += -I $(src)/extra\nobj-y := shore.o\n",
        "water/extra/shore.h": "struct deep { int metres; };\n",
    }
    kernel = open_kernel(make_tree(tmp_path, files))
    found = Structs(kernel.source("water/shore.c"), kernel).find("struct", "deep")
    assert found is not None
    assert list(found.body.members) == ["metres"]


HOSTILE = [
    "struct a { struct a; };",
    "struct a { struct b; }; struct b { struct a; };",
    "".join(f"struct a{n} {{ struct a{n + 1}; }};\n" for n in range(3000)).replace("a0 ", "a "),
    "struct a {" * 5000,
    "struct a { A };\n#define A A A A A A A A\n",
    "struct a { " + "A " * 50_000 + "};\n#define A " + "int x; " * 50_000 + "\n",
    "struct a { " + "struct {" * 200 + "int x;" + "};" * 200 + "};",
    "struct a {\n#if 1\n};\n#else\n};\n#endif\n",
    "#define a a\nstruct b { int c; };",
    "#define a b\n#define b a\n",
    "struct a { int x[; };",
    "typedef struct a a;",
    "extern " * 100_000 + "DECLARE_A(" * 100_000,
    "typedef struct " * 50_000,
    "struct __attribute__((" + "(" * 3000 + " a {",
    "struct a { int x; };" + "/* a { " * 200_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_definitions_end(text: str) -> None:
    structs = Structs(SourceFile("a.c", text))
    structs.find("struct", "a")
    structs.typedef("a")
    structs.declares("a")
    structs.has_function("a")
    structs.macro("a")


@given(
    st.lists(
        st.sampled_from(
            "struct union a b { } ; , int * [ 2 ] ( ) : M __packed # \n if endif define".split(" ")
        )
    )
)
def test_no_text_breaks_the_reader(words: list[str]) -> None:
    found = Structs(SourceFile("a.c", "struct a { " + " ".join(words) + " };")).find("struct", "a")
    assert found is None or isinstance(found.doubt, str)
