"""Python of a model in the interpreter of pydantic-monty, in a helper process (processes.py).

the code, and the names and arguments of tools -> a worker of monty, which has no files and no network
    -> a line `?{"name", "arguments"}` for each call of a tool, answered by a line `{"result"}` or `{"failure"}`
    -> the last line: `{"output", "value"}`, with `failure` if the code failed

The worker inherits the limits of this process. A dead worker is a failure with what was printed before.
"""

import json
import math
import os
import resource
import shutil
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

CPU_SECONDS = 10
# Of address space, for this process and its worker each. Monty counts the objects of the code up to HEAP_BYTES.
MEMORY_BYTES = 512 * 1024 * 1024
HEAP_BYTES = 256 * 1024 * 1024
RESULT_BYTES = 64 * 1024
_VALUE_BYTES = 16 * 1024  # of RESULT_BYTES, that the output leaves to the value
_MOST_SUSPENSIONS = 1_000
_MOST_DEPTH = 50
_FAILURE_CHARACTERS = 2_000
CUT = "\n[The output is longer. It is cut here.]"
_CUT_VALUE = " [cut]"


@cache
def binary() -> str | None:
    """Return the path of monty's worker, or None without the extra `python`. For the server."""
    if find_spec("pydantic_monty") is None:
        return None
    beside = Path(sysconfig.get_path("scripts")) / "monty"
    return str(beside) if beside.is_file() else shutil.which("monty")


def order(code: str, tools: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the order for the helper process. `tools` are the names of the arguments by the name of the function."""
    return {"path": sys.path, "binary": binary(), "code": code, "tools": tools}


class Output:
    """What the code has printed, up to RESULT_BYTES."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._bytes_left = RESULT_BYTES + 1  # one more shows that there is more

    def __call__(self, stream: str, text: str) -> None:
        if self._bytes_left > 0:
            self._parts.append(text[: self._bytes_left])
            self._bytes_left -= len(self._parts[-1].encode("utf-8", "replace"))

    def text(self, most_bytes: int = RESULT_BYTES) -> str:
        return cut("".join(self._parts), most_bytes, CUT)


def cut(text: str, most_bytes: int, note: str) -> str:
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= most_bytes:
        return encoded.decode()
    return encoded[: max(most_bytes - len(note), 0)].decode("utf-8", "ignore") + note


def plain(value: Any, depth: int = 0) -> Any:
    """Return a value of the code as JSON has it. Other objects become their text."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else _digits(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth < _MOST_DEPTH:
        if isinstance(value, dict):
            return {
                plain(key) if isinstance(key, str) else _text(key): plain(one, depth + 1) for key, one in value.items()
            }
        if isinstance(value, list | tuple | set | frozenset):
            return [plain(one, depth + 1) for one in value]
    return _text(value)


def _digits(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # over 4,300 digits
        return hex(value)


def _text(value: Any) -> str:
    try:
        return repr(value)[:RESULT_BYTES]
    except (ValueError, RecursionError):
        return f"<{type(value).__name__}>"


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _size(value: Any) -> int:
    return 0 if value is None else len(_written(value).encode())


def fitting(value: Any, most_bytes: int) -> Any:
    """Return a value of JSON, or the beginning of its text if that is too long."""
    return value if _size(value) <= most_bytes else cut(_written(value), most_bytes, _CUT_VALUE)


def _tool(name: str, parameters: list[str]) -> Callable[..., Any]:
    """Return the function by which the code calls a tool."""

    def call(*values: Any, **named: Any) -> Any:
        if len(values) > len(parameters):
            raise TypeError(f"{name}() takes {len(parameters)} arguments ({', '.join(parameters)})")
        arguments = {**dict(zip(parameters, values, strict=False)), **named}
        question = json.dumps({"name": name, "arguments": plain(arguments)})
        sys.stdout.write(f"?{question}\n")
        sys.stdout.flush()
        answer = json.loads(sys.stdin.buffer.readline() or b'{"failure": "The service has ended the run."}')
        if "failure" in answer:
            raise RuntimeError(answer["failure"])
        return answer["result"]

    return call


def _run(given: dict[str, Any], output: Output) -> dict[str, Any]:
    import pydantic_monty as monty

    lookup = {name: _tool(name, parameters) for name, parameters in given["tools"].items()}
    limits: monty.ResourceLimits = {"max_memory": HEAP_BYTES, "max_suspensions": _MOST_SUSPENSIONS}
    try:
        with (
            monty.Monty(binary_path=given["binary"], max_processes=1) as pool,
            pool.checkout(limits=limits, os_policy={"sleep": "zero"}) as session,
        ):
            value = session.feed_run(given["code"], external_lookup=lookup, print_callback=output)
        return {"value": plain(value)}
    except (monty.MontyRuntimeError, monty.MontySyntaxError) as error:
        return {"failure": error.display("type-msg").strip()}
    except monty.MontyCrashedError:
        return {"failure": _death()}
    except monty.MontyError as error:
        return {"failure": str(error)}


def _death() -> str:
    """Say which limit the worker has probably met."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if used.ru_utime + used.ru_stime > CPU_SECONDS - 1:
        return f"The code was stopped: it used {CPU_SECONDS} seconds of CPU."
    return f"The code was stopped: its process failed, perhaps beyond {MEMORY_BYTES >> 20} MiB or its depth of calls."


def answer(given: dict[str, Any]) -> bytes:
    os.nice(4)  # 32 of them together get less than the server
    sys.path += given["path"]
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    output = Output()
    try:
        done = _run(given, output)
    except (MemoryError, RecursionError):
        done = {"failure": "The result of the code is too large."}
    if "failure" in done:
        failure = done["failure"][:_FAILURE_CHARACTERS]
        return json.dumps({"output": output.text(RESULT_BYTES - 4 * len(failure)), "failure": failure}).encode()
    value = fitting(done["value"], RESULT_BYTES)
    text = output.text(RESULT_BYTES - min(_size(value), _VALUE_BYTES))
    return json.dumps({"output": text, "value": fitting(value, RESULT_BYTES - len(text.encode()))}).encode()
