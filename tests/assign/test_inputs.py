"""Which inputs an assignment has, on all its paths."""

from assign.common import inputs


def test_inputs_of_all_branches_in_order():
    found = inputs(
        "__field(int, a) __array(char, comm, 16)",
        "if (p->kind == 1) __entry->a = p->x; else __entry->a = get(p, n);"
        "memcpy(__entry->comm, p->comm, 16);",
    )
    assert list(found) == ["p->kind", "p->x", "get(p, n)", "p->comm"]


def test_types_and_roles():
    found = inputs(
        "__field(u16, a) __field(void *, q) __array(char, c, 16) __string(t, p->name) __dynamic_array(u8, d, p->len)",
        "__entry->a = p->x; __entry->q = p; memcpy(__entry->c, p->comm, 16); __assign_str(t, p->name);"
        "memcpy(__get_dynamic_array(d), p->data, p->len);",
    )
    assert (found["p->x"].role, found["p->x"].size, found["p->x"].is_signed) == ("int", 2, False)
    assert (found["p"].role, found["p"].ctype, found["p"].field) == ("pointer", "struct foo *", "q")
    assert (found["p->comm"].role, found["p->comm"].length, found["p->comm"].field) == ("bytes", 16, "c")
    assert found["p->name"].role == "string"
    assert found["p->len"].role == "length"
    assert found["p->data"].role == "bytes"


def test_what_is_followed_by_an_arrow_is_a_pointer():
    found = inputs("__field(int, a)", "__entry->a = p->q ? p->q->x : 0;")
    assert found["p->q"].role == "pointer"


def test_a_field_that_counts_what_is_copied_makes_its_input_a_length():
    found = inputs(
        "__field(u8, len) __array(u8, d, 32)", "__entry->len = p->n; memcpy(__entry->d, p->d, __entry->len);"
    )
    assert found["p->n"].role == "length"


def test_arithmetic_is_not_an_input():
    found = inputs("__field(u32, a)", "__entry->a = be32_to_cpu(p->x) + min(n, 4) + MAJOR(p->dev);")
    assert list(found) == ["p->x", "n", "p->dev"]
    assert found["p->x"].is_swapped


def test_read_once_is_transparent():
    assert list(inputs("__field(u32, a)", "__entry->a = READ_ONCE(p->x);")) == ["p->x"]


def test_condition_and_sources_count():
    found = inputs("__string(t, s)", "__assign_str(t, s);", macro="TP_CONDITION(u > 1), ")
    assert list(found) == ["u", "s"]
