"""svc/deploy/svc.service: what it sets and starts, and the documented hook for a renewed certificate."""

import os
import re
import shlex
import subprocess
from pathlib import Path

from svc.config import from_environ
from tests.support.pages import EXAMPLES
from tests.support.server import ROOT

UNIT = ROOT / "svc" / "deploy" / "svc.service"
TOKEN = "a token of the operator's"


def lines(name: str) -> list[str]:
    """The values of a directive, in order."""
    return re.findall(rf"^{name}=(.*)$", UNIT.read_text(), re.MULTILINE)


def environment(tmp_path: Path) -> dict[str, str]:
    """What the unit sets, with its folders in `tmp_path`."""
    (tmp_path / "credentials").mkdir()
    for credential in lines("LoadCredential"):
        (tmp_path / "credentials" / credential.partition(":")[0]).write_text(f"{TOKEN}\n")
    values = [
        value.replace("%S", str(tmp_path)).replace("%d", str(tmp_path / "credentials"))
        for value in lines("Environment")
    ]
    return dict(value.split("=", 1) for value in values)


def test_unit_sets_only_known_settings(tmp_path: Path) -> None:
    config = from_environ(environment(tmp_path))
    assert (config.data_dir, config.metrics_token) == (tmp_path / "svc", TOKEN)


def test_unit_runs_a_command_of_the_service() -> None:
    program, *arguments = shlex.split(lines("ExecStart")[0])
    assert (Path(program).name, arguments) == ("svc", ["serve"])
    assert lines("Type") == ["notify"] and float(lines("WatchdogSec")[0]) >= 10


def test_unit_may_write_only_its_own_folder() -> None:
    assert lines("ProtectSystem") == ["strict"] and lines("ReadWritePaths") == []
    assert lines("StateDirectory") == ["svc"] and lines("StateDirectoryMode") == ["0700"]
    assert lines("NoNewPrivileges") == ["yes"] and lines("DynamicUser") == ["yes"]
    assert not {"AF_PACKET", "AF_NETLINK"} & set(lines("RestrictAddressFamilies")[0].split())


def run_hook(tmp_path: Path, reload: str) -> None:
    """Run the documented hook for the certificate in `lineage`, with `reload` in place of systemctl."""
    hook = EXAMPLES["renewal-hook"].replace("/var/lib/svc", str(tmp_path / "data"))
    script = hook.replace("systemctl try-reload-or-restart svc", reload)
    assert script != hook
    env = {**os.environ, "RENEWED_LINEAGE": str(tmp_path / "lineage")}
    subprocess.run(["sh", "-ec", script], env=env, check=True, timeout=30)


def test_documented_hook_copies_a_renewed_certificate_for_the_service_alone(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "certificate"
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "lineage").mkdir()
    for number in range(2):
        for name in ("fullchain.pem", "privkey.pem"):
            (tmp_path / "lineage" / name).write_text(f"{name} {number}")
        run_hook(tmp_path, f"cp -r {folder} {tmp_path}/reloaded-{number}")
        copied = {path.name: path.read_text() for path in (tmp_path / f"reloaded-{number}").iterdir()}
        assert copied == {name: f"{name} {number}" for name in ("fullchain.pem", "privkey.pem")}, "before the reload"
    assert folder.stat().st_mode & 0o777 == 0o700 and (folder / "privkey.pem").stat().st_mode & 0o777 == 0o600
