"""Cases of a test, played one after the other with the same fixtures: an application for each case takes most of the
time.
"""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any


def each(names: str | Sequence[str], cases: Iterable[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Call the test with each case. A failure names its case.

    Use `pytest.mark.parametrize` where cases would disturb each other.
    """
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    listed = [dict(zip(arguments, case if len(arguments) > 1 else (case,), strict=True)) for case in cases]

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        async def played_async(**fixtures: Any) -> None:
            for case in listed:
                with named(case):
                    await test(**fixtures, **case)

        @functools.wraps(test)
        def played(**fixtures: Any) -> None:
            for case in listed:
                with named(case):
                    test(**fixtures, **case)

        found = played_async if inspect.iscoroutinefunction(test) else played
        signature = inspect.signature(test)
        fixtures = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        setattr(found, "__signature__", signature.replace(parameters=fixtures))  # noqa: B010 - mypy knows no such attribute
        return found

    return decorate


@contextlib.contextmanager
def named(case: dict[str, Any]) -> Iterator[None]:
    """Name the case in a failure of the block."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"the case: {case!r:.1000}")
        raise
