"""A command or the server that kills itself in a rotation of secrets, just before the step of a number. A step is a
sync, a rename, a deletion, or a statement that changes a secret or ends its transaction. The first one follows the first
file. Other transactions of the server are no steps: how many come in between depends on the machine.

python -m tests.support.killed STEP COMMAND
"""

import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from svc import cli


def main() -> int:
    left, begun = int(sys.argv[1]), False
    first = Path(os.environ["SVC_DATA_DIR"]) / "master.key.new.new"

    def before(function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            nonlocal left, begun
            begun = begun or first.exists()
            left -= begun
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return counted

    class Connection(sqlite3.Connection):
        changed = False

        def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
            changes = statement.startswith(("UPDATE installation", "UPDATE providers"))
            step = changes or (self.changed and statement == "COMMIT")
            self.changed = changes or (self.changed and not step)
            run = super().execute
            found: sqlite3.Cursor = (before(run) if step else run)(statement, *values)
            return found

    connect = sqlite3.connect
    for owner, name in ((os, "fsync"), (Path, "rename"), (Path, "unlink")):
        setattr(owner, name, before(getattr(owner, name)))
    setattr(sqlite3, "connect", lambda *arguments, **options: connect(*arguments, factory=Connection, **options))  # noqa: B010
    return cli.main(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
