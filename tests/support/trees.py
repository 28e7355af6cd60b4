"""Syntax trees of Python files, parsed once a process for all tests of the house."""

import ast
from functools import cache
from pathlib import Path


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a file, the outer ones first."""
    return tuple(ast.walk(tree_of(path)))
