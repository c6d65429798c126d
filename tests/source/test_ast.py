from tracepoint.source import ast
from tracepoint.source.cexpr import parse_expression, write_expression

EVERYTHING = 'f(sizeof(a), (u8)b[c], &d->e, g ? h : i, (struct s){ .j = k }, "l" M "n", ({ o; })), -p == q.r'


def names(found: object) -> str:
    return " ".join(node.name for node in found if isinstance(node, ast.Name))


def test_walk_goes_in_the_order_of_the_text_and_into_everything() -> None:
    assert names(ast.walk(parse_expression(EVERYTHING))) == "f a b c d g h i j k M p q"


def test_walk_over_operands_leaves_out_what_is_not_evaluated() -> None:
    assert names(ast.walk(parse_expression(EVERYTHING), ast.operands)) == "b c d g h i j k M p q"


def test_tree_that_no_function_changes_is_the_same_object() -> None:
    node = parse_expression(EVERYTHING)
    assert ast.transform(node, lambda inner: inner) is node


def test_transform_replaces_in_all_places() -> None:
    def numbered(node: ast.Node) -> ast.Node:
        return ast.Number(1) if isinstance(node, ast.Name) and node.name in "abcdghip" else node

    made = write_expression(ast.transform(parse_expression(EVERYTHING), numbered))
    assert made == write_expression(
        parse_expression(
            'f(sizeof(1), (u8)1[1], &1->e, 1 ? 1 : 1, (struct s){ .j = k }, "l" M "n", ({ o; })), -1 == q.r'
        )
    )


def test_map_operands_leaves_what_is_called_and_sizes() -> None:
    node = parse_expression("f(a, sizeof(a))")
    made = ast.map_operands(node, lambda inner: ast.map_operands(inner, lambda _: ast.Name("x")))
    assert made is node
    assert write_expression(ast.map_operands(node, lambda _: ast.Name("x"))) == "f(x, x)"
