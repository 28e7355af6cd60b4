"""What handlers are given is typed: a misspelt name is found before anything runs. Settings decide what is opened."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Service

ROOT = Path(__file__).parent.parent.parent
HANDLER = """
from starlette.responses import Response

from svc.auth import accounts
from svc.server.gate import Caller
from svc.server.state import Request
from svc.server.web import no_content


async def handler(request: Request, caller: Caller) -> Response:
    state = request.state
    account = caller.account(state.db)
    {line}
    return no_content()
"""
RIGHT = ["await state.db.write(accounts.delete_account, account.id)", "print(account.email, caller.tier)"]
WRONG = [
    ("await state.db.wrote(accounts.delete_account, account.id)", '"Database" has no attribute "wrote"'),
    ("print(account.pasword)", '"Account" has no attribute "pasword"'),
    ("print(account.password_hash)", '"Account" has no attribute "password_hash"'),
    ("print(account.email, caller.teir)", '"Caller" has no attribute "teir"'),
]


@pytest.mark.slow
def test_a_misspelt_field_of_the_state_or_of_an_account_fails_the_type_check(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    for number, line in enumerate([*RIGHT, *(line for line, _ in WRONG)]):
        (tmp_path / f"handler_{number}.py").write_text(HANDLER.format(line=line))
    arguments = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", "--no-error-summary"]
    files = sorted(tmp_path.glob("handler_*.py"))
    answer = subprocess.run(
        [*arguments, "--cache-dir", ROOT / ".mypy_cache", *files], capture_output=True, text=True, cwd=ROOT
    )
    found = {line.partition(":")[0].rpartition("/")[2]: line for line in answer.stdout.splitlines()}
    assert set(found) == {f"handler_{len(RIGHT) + number}.py" for number in range(len(WRONG))}, (
        answer.stdout + answer.stderr
    )
    for line, (_, expected) in zip((found[name] for name in sorted(found)), WRONG, strict=True):
        assert expected in line


async def test_default_settings_open_no_mail_and_no_identity_provider(service: Service) -> None:
    assert service.state["mail"] is None and service.state["identity_providers"] == {}
    assert service.state["payments"].mode == "sandbox", "the tests run in local posture"
