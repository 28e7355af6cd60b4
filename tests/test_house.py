"""The shape of the house: which package may import which, that importing opens nothing, and how long things may be."""

import ast
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# The ground, then the packages, from below to above: each imports from those before it only. The modules that stand directly in
# svc/ are the ground, all but the command line, which stands above everything.
GROUND = tuple(path.stem for path in (ROOT / "svc").glob("*.py") if path.stem not in ("__init__", "__main__", "cli"))
ORDER = (
    "outbound",
    "auth",
    "billing",
    "content",
    "builtin",
    "inference",
    "server",
    "agents",
    "routes",
    "commands",
    "cli",
    "__main__",
)
FILES = sorted((ROOT / "svc").rglob("*.py"))
IDS = [str(path.relative_to(ROOT)) for path in FILES]


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                target = ROOT / whole.replace(".", "/")
                yield whole if target.with_suffix(".py").exists() or target.is_dir() else str(node.module)


def place_of(module: str) -> int:
    """How high a module of ours stands: 0 for the ground."""
    name = module.split(".")[1]
    return 0 if name in GROUND else ORDER.index(name) + 1


def test_every_package_stands_in_the_order_and_everything_in_the_order_is_there() -> None:
    entries = {module_of(path).split(".")[1] for path in FILES if path != ROOT / "svc" / "__init__.py"}
    assert entries == {*GROUND, *ORDER}


@pytest.mark.parametrize("path", FILES, ids=IDS)
def test_a_package_imports_from_those_below_it_only(path: Path) -> None:
    for imported in imports_of(path):
        assert imported.split(".")[0] not in ("app", "tests"), f"{imported} stands above everything"
        if imported.startswith("svc."):
            own = module_of(path).split(".")[1]
            below = place_of(imported) < place_of(module_of(path))
            same = imported.split(".")[1] == own or place_of(imported) == place_of(module_of(path)) == 0
            assert below or same, f"{imported} is not below svc.{own}"


# Programs and tables that are proved as one: the painter by its pictures, the schemas by the document that they make.
TESTED_AS_ONE = {"svc/builtin/painter": "tests/builtin/test_paint.py", "svc/routes/schemas": "tests/server/test_openapi.py"}


@pytest.mark.parametrize("name", [name for name in IDS if not name.endswith(("__init__.py", "__main__.py"))])
def test_a_module_has_the_test_file_of_its_name(name: str) -> None:
    folder, _, file = name.rpartition("/")
    expected = TESTED_AS_ONE.get(folder) or f"tests{folder.removeprefix('svc')}/test_{file}"
    path = ROOT / expected
    assert path.exists(), f"{expected} is missing"
    assert re.search(r"^(?:async )?def test_", path.read_text(), re.MULTILINE), f"{expected} proves nothing"


def test_no_modules_import_one_another_in_a_circle() -> None:
    # A package's __init__ that imports its own modules is their door, not one of them.
    graph = {
        module_of(path): {name for name in imports_of(path) if name.startswith("svc.") and name != module_of(path)}
        for path in FILES
    }
    assert list(TopologicalSorter(graph).static_order())  # raises CycleError


def test_a_package_says_what_it_is_for_and_what_it_may_not_know() -> None:
    for name in ORDER[:-2]:
        text = ast.get_docstring(ast.parse((ROOT / "svc" / name / "__init__.py").read_text())) or ""
        assert len(text.splitlines()) >= 3, name


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
    names = [module_of(path) for path in FILES if path.name != "__main__.py"]
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


def test_no_two_classes_have_one_name() -> None:
    found: dict[str, str] = {}
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                other = found.setdefault(node.name, str(path))
                assert other == str(path), f"{node.name} stands in {other} and in {path}: one name means one thing"
