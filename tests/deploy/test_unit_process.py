"""svc/deploy/svc.service: what systemd's own tools say of it, and that a real server works inside its limits."""

import asyncio
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from svc.certificates import tls_files
from tests.deploy.test_unit import TOKEN, UNIT, environment, lines, run_hook
from tests.support.people import command, new_person
from tests.support.server import APP, running_server, running_server_sync

pytestmark = pytest.mark.needs("systemd-analyze", "strace")
# Refuses memory that is written and then run, as MemoryDenyWriteExecute= does, for the process and all that it starts.
DENY_WRITE_EXECUTE = """
import ctypes, errno, os, sys
PR_SET_MDWE, REFUSE_EXEC_GAIN = 65, 1
refused = ctypes.CDLL(None, use_errno=True).prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0)
assert not refused or ctypes.get_errno() == errno.EINVAL, "only a kernel before Linux 6.3 does not know this"
os.execvp(sys.argv[1], sys.argv[1:])
"""


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", "--no-pager", *arguments], capture_output=True, text=True, timeout=60)


def test_systemd_verifies_the_unit(tmp_path: Path) -> None:
    copy = tmp_path / "svc.service"
    installed = Path(sys.executable).parent / "svc"
    copy.write_text(UNIT.read_text().replace("/opt/svc/bin/svc serve", f"{installed} serve"))
    done = analyze("verify", copy)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    copy.write_text(copy.read_text().replace("ProtectClock=", "ProtectClocks="))
    assert "ProtectClocks" in analyze("verify", copy).stderr


def test_the_unit_is_hardened_to_an_exposure_under_2(tmp_path: Path) -> None:
    done = analyze("security", "--offline=true", "--threshold=20", UNIT)
    assert done.returncode == 0, done.stdout.splitlines()[-1]
    (tmp_path / "bare.service").write_text("[Service]\nExecStart=/bin/true\n")
    assert analyze("security", "--offline=true", "--threshold=20", tmp_path / "bare.service").returncode != 0


@cache
def syscall_groups() -> dict[str, list[str]]:
    """The groups of system calls by name, as systemd lists them."""
    listed = analyze("syscall-filter").stdout
    blocks = re.findall(r"^(@[\w-]+)\n((?:    .*\n?)+)", listed, re.MULTILINE)
    return {
        name: [line.strip() for line in block.splitlines() if not line.strip().startswith("#")]
        for name, block in blocks
    }


def expanded(names: list[str]) -> Iterator[str]:
    for name in names:
        if name.startswith("@"):
            yield from expanded(syscall_groups()[name])
        else:
            yield name


def forbidden_calls() -> list[str]:
    """Every system call that the unit's filter answers with EPERM."""
    allowed: set[str] = set()
    for value in lines("SystemCallFilter"):
        calls = set(expanded(value.removeprefix("~").split()))
        allowed = allowed - calls if value.startswith("~") else allowed | calls
    return sorted(set(expanded(["@known"])) - allowed)


@pytest.mark.timeout(180)
async def test_a_server_works_inside_the_limits_of_the_unit(tmp_path: Path) -> None:
    """Every system call that the filter refuses gets EPERM, and memory is never both writable and executable. Only the
    unit's address families and folders can be used."""
    forbidden = forbidden_calls()
    assert {"mount", "ptrace", "setuid", "reboot", "bpf"} <= set(forbidden) and "read" not in forbidden
    names = ",".join(f"?{name}" for name in forbidden)
    trace = ["strace", "-D", "-f", "-qqq", "--seccomp-bpf", "-o", str(tmp_path / "trace")]
    trace += [f"--trace=socket,openat,{names}", f"--inject={names}:error=EPERM"]
    env = {**environment(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    async with running_server(tmp_path, env, ("-c", DENY_WRITE_EXECUTE, *trace, sys.executable, str(APP))) as server:
        person = await new_person(server)
        await asyncio.to_thread(command, server, "credit", person.email, "10")
        async with server.client(headers=person.headers, timeout=60) as client:
            chat = await client.post(
                "/v1/chat/completions", json={"model": "builtin/echo", "messages": [{"role": "user", "content": "hi"}]}
            )
            image = await client.post(
                "/v1/images/generations", json={"model": "builtin/paint", "prompt": "sea", "size": "256x256"}
            )
            speech = await client.post("/v1/audio/generate", json={"model": "builtin/voice", "input": "Hello."})
            run = await client.post(
                "/v1/agents/run", json={"goal": "Save a note that says 1 + 1", "model": "builtin/assistant"}
            )
            metrics = await client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}"})
        assert [answer.status_code for answer in (chat, image, speech, run, metrics)] == [200] * 5, server.stderr()
        assert '"type":"final"' in run.text
        assert await server.stop() == 0
    used = (tmp_path / "trace").read_text()
    families = set(re.findall(r"socket\((AF_\w+)", used))
    assert {"AF_INET"} <= families <= set(lines("RestrictAddressFamilies")[0].split())
    written = set(re.findall(r'openat\([^"]*"([^"]*)", [^)]*O_(?:WRONLY|RDWR|CREAT)', used))
    # Helper processes try to keep bytecode, which a unit's read-only folder refuses without harm.
    others = {path for path in written if "/__pycache__/" not in path}
    assert {path for path in others if not path.startswith((f"{tmp_path}/svc", "/dev/null"))} == set()
    assert f"{tmp_path}/svc/service.db" in written


def test_documented_hook_reloads_a_renewed_certificate(tmp_path: Path) -> None:
    lineage, folder = tmp_path / "lineage", tmp_path / "data" / "certificate"

    def renew(number: int) -> str:
        """Make a certificate, and return the first line of its base64."""
        authority = tmp_path / f"ca-{number}"
        authority.mkdir()
        files = tls_files(authority, ["127.0.0.1"], time.time())
        lineage.mkdir(exist_ok=True)
        (lineage / "fullchain.pem").write_bytes(files.cert.read_bytes())
        (lineage / "privkey.pem").write_bytes(files.key.read_bytes())
        return files.cert.read_text().split()[2]  # of the chain's first certificate

    def served(port: int) -> str:
        return ssl.get_server_certificate(("127.0.0.1", port), timeout=10).split()[2]

    (tmp_path / "data").mkdir(mode=0o700)
    first = renew(1)
    run_hook(tmp_path, "")
    settings = {
        "SVC_TLS": "files",
        "SVC_TLS_CERT": str(folder / "fullchain.pem"),
        "SVC_TLS_KEY": str(folder / "privkey.pem"),
    }
    with running_server_sync(tmp_path, settings) as server:
        assert served(server.port) == first
        second = renew(2)
        run_hook(tmp_path, f"kill -HUP {server.pid}")
        until = time.monotonic() + 10
        while served(server.port) != second:
            assert time.monotonic() < until
            time.sleep(0.05)
