"""The shape of the house: which package may import which, that importing opens nothing, and how long things may be."""

import ast
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from functools import cache, partial
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import app
from svc.config import Config
from svc.errors import ERRORS
from tests.conftest import SERVERS
from tests.support.trees import nodes_of, tree_of

ROOT = Path(__file__).parent.parent
# The ground, then the packages, from below to above: each imports from those before it only. The modules that stand
# directly in svc/ are the ground, all but the command line, which stands above everything.
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
    "deletion",
    "admin",
    "routes",
    "commands",
    "cli",
    "__main__",
)
FILES = sorted((ROOT / "svc").rglob("*.py"))
WITH_APP = [*FILES, ROOT / "app.py"]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports_of(path: Path) -> Iterator[str]:
    for node in nodes_of(path):
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


def test_order_lists_all_packages() -> None:
    entries = {module_of(path).split(".")[1] for path in FILES if path != ROOT / "svc" / "__init__.py"}
    assert entries == {*GROUND, *ORDER}


def test_packages_import_only_lower_packages() -> None:
    for path, imported in ((file, imported) for file in FILES for imported in imports_of(file)):
        assert imported.split(".")[0] not in ("app", "tests"), f"{name_of(path)}: {imported} stands above everything"
        if imported.startswith("svc."):
            own = module_of(path).split(".")[1]
            below = place_of(imported) < place_of(module_of(path))
            assert (own, imported.split(".")[1]) != ("commands", "routes"), (
                f"{name_of(path)}: a command imports no route"
            )
            same = imported.split(".")[1] == own or place_of(imported) == place_of(module_of(path)) == 0
            assert below or same, f"{name_of(path)}: {imported} is not below svc.{own}"


# Programs and tables that are tested as one: the painter by its pictures, exports by what they become, the schemas by the document that they make.
TESTED_AS_ONE = {
    "svc/builtin/imports": "tests/routes/test_imports.py",
    "svc/builtin/painter": "tests/builtin/test_paint.py",
    "svc/routes/schemas": "tests/server/test_openapi.py",
}


def test_each_module_has_a_test_file() -> None:
    for module in FILES:
        if module.name in ("__init__.py", "__main__.py"):
            continue
        folder = name_of(module.parent)
        expected = TESTED_AS_ONE.get(folder) or f"tests{folder.removeprefix('svc')}/test_{module.name}"
        path = ROOT / expected
        assert path.exists(), f"{expected} is missing"
        assert re.search(r"^(?:async )?def test_", path.read_text(), re.MULTILINE), f"{expected} proves nothing"


def test_imports_have_no_cycle() -> None:
    # A package's __init__ that imports its own modules is their door, not one of them.
    graph = {
        module_of(path): {name for name in imports_of(path) if name.startswith("svc.") and name != module_of(path)}
        for path in FILES
    }
    assert list(TopologicalSorter(graph).static_order())  # raises CycleError


def test_packages_describe_their_purpose() -> None:
    for name in ORDER[:-2]:
        text = ast.get_docstring(tree_of(ROOT / "svc" / name / "__init__.py")) or ""
        assert len(text.splitlines()) >= 3, name


def test_imports_open_no_file_socket_or_thread() -> None:
    """Import all modules once, so that libraries are loaded, and then ours again under an audit hook."""
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


def test_start_imports_no_large_unused_library() -> None:
    program = "import sys, app; print(*{name.partition('.')[0] for name in sys.modules})"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert answer.returncode == 0, answer.stderr
    assert "starlette" in answer.stdout.split()
    assert not {"argon2", "cryptography", "httpx", "jwt", "snowballstemmer", "tarfile", "tomllib", "zipfile"} & set(
        answer.stdout.split()
    )


# What may be imported late, beside what app._first_use imports after the start. A request that needs it takes longer, and
# is 503 while no descriptor is free.
LATE = {
    "jwt": "8 MB with cryptography, which a service without sessions never needs",
    "cryptography.hazmat.primitives.ciphers.aead": "8 MB, which a service without keys of own providers never needs",
    "cryptography.exceptions": "comes with the one before",
    "httpx": "10 MB for names outside ASCII; Stripe and identity providers import it at the start",
    "svc.outbound.json_requests": "needs httpx: imported at the start with Stripe or an identity provider",
    "svc.auth.openid": "imported at the start with an identity provider",
    "svc.authority": "needs cryptography: makes a certificate at the start or when it expires",
    "argon2.exceptions": "comes with argon2",
    "snowballstemmer.{name}_stemmer": "one for each language in which an account writes",
    "espeakng_loader": "a few lines that find a file; a helper process follows, which needs descriptors too",
    "pypdf": "in a helper process only",
    "av": "the same",
    "faster_whisper": "the same",
    "numpy": "the same",
    "pydantic_monty": "the same",
    "xllamacpp": "the same",
}


def late_imports() -> Iterator[str]:
    for path in WITH_APP:
        for function in nodes_of(path):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    if isinstance(node, ast.Import):
                        yield from (alias.name for alias in node.names)
                    elif isinstance(node, ast.ImportFrom):
                        names = {f"{node.module}.{alias.name}" for alias in node.names}
                        modules = {
                            name for name in names if (ROOT / name.replace(".", "/")).with_suffix(".py").exists()
                        }
                        yield from modules or {str(node.module)}
                    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "import_module":
                        yield ast.unparse(node.args[0]).strip("f'")


def test_modules_are_imported_at_the_start_or_after_it_or_have_a_reason() -> None:
    prepared = {
        str(step.args[0])
        for step in app._first_use(Config(smtp_url="smtp://localhost"))
        if isinstance(step, partial) and step.func is import_module
    }
    assert {"argon2", "svc.builtin.assistant", "zipfile", "email.headerregistry"} <= prepared
    found = set(late_imports())
    assert found - prepared - set(LATE) == set(), "import these at the top, or give a reason in LATE"
    assert set(LATE) - (found - prepared) == set(), "these are not needed in LATE"


def test_files_are_short_and_have_a_docstring() -> None:
    for path in WITH_APP:
        assert len(path.read_text().splitlines()) <= 400, name_of(path)
        assert ast.get_docstring(tree_of(path)), f"{name_of(path)}: a module opens with one sentence of purpose"


def test_functions_are_short_and_use_no_global() -> None:
    for path, node in ((file, node) for file in WITH_APP for node in nodes_of(file)):
        assert not isinstance(node, ast.Global), f"{name_of(path)}:{node.lineno}: a global statement"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno
            assert length < 60, f"{name_of(path)}:{node.lineno}: {node.name} has 60 lines or more"


def test_ignored_exceptions_have_a_reason() -> None:
    for path, node in ((file, node) for file in WITH_APP for node in nodes_of(file)):
        if isinstance(node, ast.ExceptHandler):
            place = f"{name_of(path)}:{node.lineno}"
            assert node.type is not None, f"{place}: except without a type"
            if all(isinstance(statement, ast.Pass) for statement in node.body):
                handler = path.read_text().splitlines()[node.lineno - 1 : node.end_lineno]
                assert any("#" in line for line in handler), f"{place}: except … pass without a comment"


# What may stand before `or NUMBER`, with the reason why it is never 0.
NEVER_ZERO = {
    "context.status": "an HTTP status",
    "error.retry_after_seconds": "0 would mean at once, and Retry-After is at least 1",
    "group.chats_per_minute if group else None": "the shape of the catalog takes 1 or more",
    "body.get('n')": "the shapes of the requests take 1 or more",
    "self._body.get('n')": "the shapes of the requests take 1 or more",
    "self._request.get('n')": "the shapes of the requests take 1 or more",
    "body.get('speed')": "the shape of the request takes 0.25 or more",
    "len(text)": "a range needs a step or an end of 1",
    "alpha": "a text of figures.txt",
    "abs(along)": "a divisor",
    "multiple": "0 is no multiple, and a divisor",
}


def is_number(node: ast.expr | None) -> bool:
    """Whether `node` is a number, computed from numbers, or a collection of them."""
    match node:
        case ast.Constant():
            return type(node.value) in (int, float)
        case ast.BinOp():
            return is_number(node.left) and is_number(node.right)
        case ast.UnaryOp():
            return is_number(node.operand)
        case ast.Tuple():
            return bool(node.elts) and all(map(is_number, node.elts))
        case ast.Dict():
            return bool(node.values) and all(map(is_number, node.values))
    return False


@cache
def number_constants() -> frozenset[str]:
    """The names of all module constants that hold numbers."""
    names: set[str] = set()
    for node in (node for path in WITH_APP for node in tree_of(path).body):
        if isinstance(node, ast.Assign | ast.AnnAssign) and is_number(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return frozenset(names)


def defaults_for_zero(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each expression before `or NUMBER` with its place. `or 0` changes no number."""
    for node in nodes_of(path):
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
            default = node.values[-1].value if isinstance(node.values[-1], ast.Subscript) else node.values[-1]
            named = isinstance(default, ast.Name) and default.id in number_constants()
            if named or (isinstance(default, ast.Constant) and is_number(default) and default.value):
                yield from ((ast.unparse(value), f"{name_of(path)}:{node.lineno}") for value in node.values[:-1])


def test_zero_from_a_person_or_a_configuration_is_a_value() -> None:
    """`or DEFAULT` takes 0 for missing. Compare with None, or say in NEVER_ZERO why 0 cannot come."""
    assert {"DEFAULT_AUDIO_TOKENS", "LEAST_AUDIO_TOKENS", "CHAT_PER_MINUTE", "_SECONDS"} <= number_constants()
    found = [one for path in WITH_APP for one in defaults_for_zero(path)]
    assert [place for value, place in found if value not in NEVER_ZERO] == []
    assert {value for value, _ in found} == set(NEVER_ZERO), "an entry without a place"


def test_raised_codes_are_in_the_table_of_errors() -> None:
    for path, node in ((file, node) for file in WITH_APP for node in nodes_of(file)):
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) == "ApiError"
            and isinstance(node.args[0], ast.Constant)
        ):
            code = node.args[0].value
            assert code in ERRORS, f"{name_of(path)}:{node.lineno}: add {code} to svc/errors.py"


# Why a handler's module may use SQL itself.
SQL_IN_ROUTES = {
    "svc/routes/export.py": "reads all rows of an account, whatever module owns them",
    "svc/routes/service.py": "writes a number that belongs to no table, to test the storage",
}


def test_handlers_leave_sql_to_the_owner_of_the_table() -> None:
    found = {
        name_of(path)
        for path in (ROOT / "svc" / "routes").rglob("*.py")
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute) and node.attr in ("execute", "executemany", "executescript")
    }
    assert found - set(SQL_IN_ROUTES) == set(), "move the SQL to the module that owns the table (`-- owner:`)"
    assert set(SQL_IN_ROUTES) - found == set(), "these are not needed in SQL_IN_ROUTES"


def test_class_names_are_unique() -> None:
    found: dict[str, str] = {}
    for path in FILES:
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef):
                other = found.setdefault(node.name, str(path))
                assert other == str(path), f"{node.name} stands in {other} and in {path}: one name means one thing"


def marked_slow(node: ast.AST) -> bool:
    return re.search(r"pytest\.mark\.(slow|soak)", ast.unparse(node)) is not None


def wall_clocks_in(path: Path) -> Iterator[str]:
    """Where a plain test reads a wall clock."""
    if re.search(r"monotonic|perf_counter|\btime\(", path.read_text()) is None:
        return  # to parse all tests takes seconds
    tree = tree_of(path)
    imported = {alias.name for node in nodes_of(path) if isinstance(node, ast.ImportFrom) for alias in node.names}
    marks = (
        node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    )
    if not SERVERS.isdisjoint(imported) or any(map(marked_slow, marks)):
        return
    for top in tree.body:
        if not any(map(marked_slow, getattr(top, "decorator_list", ()))):
            for node in ast.walk(top):
                if isinstance(node, ast.Call) and re.fullmatch(
                    r"time\.(monotonic|perf_counter)(_ns)?|.*loop(\(\))?\.time", ast.unparse(node.func)
                ):
                    yield f"{name_of(path)}:{node.lineno}"


def test_plain_tests_read_no_wall_clock() -> None:
    """A busy machine would fail it. Count, measure CPU time, wait with a generous timeout, or mark the test slow."""
    assert [found for path in sorted((ROOT / "tests").rglob("test_*.py")) for found in wall_clocks_in(path)] == []


# Tests that cannot be plain, by file. All others have a plain test, in the same file or in the one that `_process` or
# `_soak` at the end of a name refers to.
NEVER_PLAIN = {
    "clients/test_misbehaviour.py": "Codex and Claude Code themselves; test_codex.py and test_claude_code.py play what they send",
    "inference/test_real_servers.py": "model servers of others; test_format_server.py plays what they answered",
    "clients/test_sdks.py": "the SDKs themselves; tests/inference/formats has the formats",
    "test_attacks.py": "waits of a server process beside its attackers; tests of the attacked modules have the limits",
}


def imports_a_server(text: str) -> bool:
    """Whether `pytest_collection_modifyitems` marks the tests of this module as slow."""
    imported = re.findall(r"^from \S+ import (?:\(([^)]*)\)|(.*))$", text, re.MULTILINE)
    return not SERVERS.isdisjoint(re.findall(r"\w+", " ".join(map("".join, imported))))


def has_plain_test(text: str) -> bool:
    if imports_a_server(text):
        return False
    if "pytest.mark.slow" not in text and "pytest.mark.soak" not in text:  # to parse all tests takes seconds
        return re.search(r"^(?:async )?def test_", text, re.MULTILINE) is not None
    tree = ast.parse(text)
    if any(map(marked_slow, (node for node in tree.body if isinstance(node, ast.Assign)))):
        return False
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return any(
        one.name.startswith("test_") and not any(is_slow_mark(mark) for mark in one.decorator_list) for one in functions
    )


def is_slow_mark(decorator: ast.expr) -> bool:
    return ast.unparse(decorator) in ("pytest.mark.slow", "pytest.mark.soak")  # not that of one case


def test_plain_tests_are_found() -> None:
    assert has_plain_test("def test_x(): ...") and not has_plain_test("def x(): ...")
    assert not has_plain_test("from a import (\n    b,\n    running_server,\n)\ndef test_x(): ...")
    assert not has_plain_test("pytestmark = [pytest.mark.slow]\ndef test_x(): ...")
    assert not has_plain_test("@pytest.mark.slow\nasync def test_x(): ...")
    assert has_plain_test("@pytest.mark.slow\ndef test_x(): ...\ndef test_y(): ...")
    assert has_plain_test(
        "@pytest.mark.parametrize('a', [1, pytest.param(2, marks=pytest.mark.soak)])\ndef test_x(): ..."
    )


def test_each_test_file_has_a_plain_test() -> None:
    """Play the rule in this process, as tests/support/wire.py and served.py do, or say why that is impossible."""
    tests = ROOT / "tests"
    texts = {
        path.relative_to(tests).as_posix(): path.read_text()
        for path in tests.rglob("test_*.py")
        if path.relative_to(tests).parts[0] != "web"
    }
    plain = {name for name, text in texts.items() if has_plain_test(text)}
    slow = {name: re.sub(r"_(process|soak)\.py$", ".py", name) for name in texts.keys() - plain}
    assert {name for name, beside in slow.items() if beside not in plain} == set(NEVER_PLAIN)


MOST_PATCHES = 41


def test_tests_patch_little() -> None:
    """A patch binds a test to the inside of a module. Use a fake at the end of the process, the configuration or the
    clock, and lower this number with each patch that you remove.
    """
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if "setattr(" in path.read_text()  # to parse all tests takes seconds
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr"
    ]
    assert len(found) <= MOST_PATCHES, found


MOST_PRIVATE_NAMES = 51
# Only such files are parsed: to parse all tests takes seconds.
MAY_BE_PRIVATE = re.compile(r"(?<!self)(?<!cls)\._[A-Za-z]|\bimport\b.*\b_[A-Za-z]|^ +_[A-Za-z]\w*,$|setattr\(", re.M)


def private_names(path: Path) -> set[str]:
    """The names with a leading underscore that a module takes from another one or patches there."""
    found = set()
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] in ("svc", "app"):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute) and node.attr[0] == "_":
            if ast.unparse(node.value) not in ("self", "cls", "super()", "os"):
                found.add(node.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            texts = (one.value for one in node.args[:2] if isinstance(one, ast.Constant) and isinstance(one.value, str))
            found |= {text.rpartition(".")[2] for text in texts}
    return {name for name in found if re.match("_(?!_)", name)} - {"_replace", "_asdict", "_request_id"}


def test_tests_use_few_private_names() -> None:
    """Test through the public surface, or make the rule public. Lower this number with each name less."""
    paths = sorted((ROOT / "tests").rglob("*.py"))
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in paths
        if MAY_BE_PRIVATE.search(path.read_text())
        for name in sorted(private_names(path))
    ]
    assert len(found) <= MOST_PRIVATE_NAMES, found
