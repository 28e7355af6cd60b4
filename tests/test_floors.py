"""The shape of the house (architecture.md): who may import whom, that importing opens nothing, and how long things may be."""

import ast
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# A module imports from lower floors only, never sideways or up. A folder that is one service stands here as a whole, one with
# `.*` for each of its files. The steps are finer than architecture.md's (0 to 2 are its 0 and 1, 4 and 5 its 3), so that none
# needs an exception.
FLOORS = {
    0: "errors",
    1: "addresses audio calculate config connection ids money",
    2: "db fulltext log metrics oauth outbound protocol repair secrets sse stripe web",
    3: "accounts agent artifacts builtin catalog chat_request checkout_cookie checkout_pages github history identities limits "
    "mail oauth_flows openid payments projects providers runs support tokens upstream usage wallet wire workers",
    4: "conversations ending engines gate models tools upstream_media",
    5: "media remember work",
    6: "routes.* serve",
    7: "cli",
    8: "__main__",
}
FLOOR_OF = {f"svc.{name}": floor for floor, names in FLOORS.items() for name in names.split()}
FILES = sorted((ROOT / "svc").rglob("*.py"))
IDS = [str(path.relative_to(ROOT)) for path in FILES]


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def entry_of(module: str) -> str:
    """The entry of the table that a module belongs to: its own, or its folder's."""
    parts = module.removesuffix(".__init__").split(".")
    folder = ".".join(parts[:2])
    return next((name for name in (f"{folder}.*", folder) if name in FLOOR_OF), module)


def imports_of(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                path = ROOT / whole.replace(".", "/")
                yield whole if path.with_suffix(".py").exists() or path.is_dir() else str(node.module)


def test_every_file_stands_in_the_table_and_every_entry_is_there() -> None:
    entries = {entry_of(module_of(path)) for path in FILES} - {"svc.__init__"}
    assert entries - set(FLOOR_OF) == set(), "these have no floor yet"
    assert set(FLOOR_OF) - entries == set(), "these are gone"


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_a_module_imports_from_lower_floors_only(path: Path) -> None:
    entry = entry_of(module_of(path))
    for imported in imports_of(ast.parse(path.read_text())):
        assert imported.split(".")[0] not in ("app", "tests"), f"{imported} stands above everything"
        own_folder = entry_of(imported) == entry and not entry.endswith(".*")
        if imported.split(".")[0] == "svc" and not own_folder:
            assert FLOOR_OF[entry_of(imported)] < FLOOR_OF[entry], f"{imported} is not below {entry}"


def test_importing_any_module_opens_no_file_socket_or_thread() -> None:
    """Imports all once, so that other people's modules are there, and then ours again under an audit hook."""
    program = """
        import importlib, sys
        sys.dont_write_bytecode = True
        names = sys.argv[1:]
        for name in names:
            importlib.import_module(name)
        for name in [name for name in sys.modules if name == "app" or name.split(".")[0] == "svc"]:
            del sys.modules[name]
        seen = set()
        OPENING = ("open", "socket.", "_thread.start", "subprocess.", "sqlite3.", "os.mkdir", "os.remove", "os.rename")

        def note(event, arguments):
            if event.startswith(OPENING) and not (event == "open" and str(arguments[0]).endswith((".py", ".pyc"))):
                seen.add(f"{event} {arguments!r:.100}")

        sys.addaudithook(note)
        for name in names:
            importlib.import_module(name)
        done = sorted(seen)
        open("/dev/null").close()
        assert len(seen) == len(done) + 1, "the hook notes what is opened"
        print("\\n".join(done))
    """
    names = [module_of(path).removesuffix(".__init__") for path in FILES if path.name != "__main__.py"]
    arguments = [sys.executable, "-c", textwrap.dedent(program), *names, "app"]
    answer = subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.strip() == ""


@pytest.mark.parametrize("path", [*FILES, ROOT / "app.py"], ids=[*IDS, "app.py"])
def test_a_file_is_short_and_says_what_it_is_for(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    assert ast.get_docstring(ast.parse(text)), "a module opens with one sentence of purpose"


@pytest.mark.parametrize("path", [*FILES, ROOT / "app.py"], ids=[*IDS, "app.py"])
def test_a_function_is_short_and_nothing_is_global(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        assert not isinstance(node, ast.Global), f"line {node.lineno}: a global statement"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 60, f"line {node.lineno}: {node.name} has 60 lines or more"


@pytest.mark.parametrize("path", [*FILES, ROOT / "app.py"], ids=[*IDS, "app.py"])
def test_an_exception_is_passed_over_only_with_a_reason(path: Path) -> None:
    text = path.read_text()
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"line {node.lineno}: except without a type"
            if all(isinstance(statement, ast.Pass) for statement in node.body):
                handler = lines[node.lineno - 1 : node.end_lineno]
                assert any("#" in line for line in handler), f"line {node.lineno}: except … pass without a comment"
