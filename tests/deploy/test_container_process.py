"""svc/deploy/Containerfile: its steps run in separate roots, and the result serves as an unprivileged user in a
read-only root."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.deploy.test_container import FILE, environment, stages, values
from tests.deploy.test_wheel_process import BECOME
from tests.support.server import ROOT, running_server_sync

# uv plays pip: it takes a fifth of the CPU, and checks the hashes as well.
PYTHON = f"""#!/bin/sh
[ "$2 $3 $5" = "pip --python install" ] || exec {sys.executable} "$@"
python=$4
shift 5
exec {sys.executable} -m uv pip install --quiet --compile-bytecode --python $python "$@"
"""


def copy(rest: str, root: str, build: str) -> str:
    """Return the command for `COPY rest`. It copies the content of a folder, not the folder; `build` is the first
    stage.
    """
    *sources, target = rest.split()
    if sources[0] == "--from=build":
        return f"mkdir -p {root}{target} && cp -a {build}{sources[1]}/. {root}{target}"
    paths = [ROOT / source for source in sources]
    if len(paths) == 1 and paths[0].is_file():
        return f"mkdir -p {root}{Path(target).parent} && cp {paths[0]} {root}{target}"
    contents = " ".join(f"{path}/." if path.is_dir() else str(path) for path in paths)
    return f"mkdir -p {root}{target} && cp -r {contents} {root}{target}"


def steps(folder: str) -> Iterator[str]:
    """Return a shell script that runs the steps of the Containerfile. Each stage is a layer over this machine's root,
    in memory."""
    python = Path(sys.base_prefix)
    yield f"mount -t tmpfs none {folder}"
    for number, stage in enumerate(stages()):
        root = f"{folder}/{number}"
        yield f"mkdir {root} {root}-upper {root}-work"
        yield f"mount -t overlay overlay -o lowerdir=/,upperdir={root}-upper,workdir={root}-work {root}"
        yield f"mount --rbind /dev {root}/dev; mount --rbind /proc {root}/proc"
        yield f"mount --bind /etc/resolv.conf {root}/etc/resolv.conf"
        # The tests' Python plays that of the image; everybody may run it.
        yield f"printf %s {shlex.quote(PYTHON)} >{root}/usr/local/bin/python; chmod 755 {root}/usr/local/bin/python"
        yield from (f"chmod a+rx {root}{place}" for place in (python, *python.parents))
        for name, rest in stage:
            if name == "RUN":
                yield f"chroot {root} sh -euc {shlex.quote(rest)} >&2"
            elif name == "COPY":
                yield copy(rest, root, f"{folder}/0")
    yield "echo built; exec cat"


def inside(pid: int) -> list[str]:
    """Return the prefix of a command that runs in the mount namespace of a process."""
    return [str(shutil.which("nsenter")), f"--mount=/proc/{pid}/ns/mnt"]


@dataclass
class Image:
    """The root of the last stage, in the mount namespace of the process `pid`; `data` is its volume, from outside."""

    pid: int
    root: str
    data: Path

    def inside(self, *command: str) -> list[str]:
        """The command line that runs `command` in the image, as its user."""
        user = values(stages()[-1], "USER")[-1]
        return [*inside(self.pid), str(shutil.which("chroot")), f"--userspec={user}", self.root, *command]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    folder, data = tmp_path_factory.mktemp("image"), tmp_path_factory.mktemp("volume")
    if subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", folder], capture_output=True).returncode:
        pytest.skip("only root may make roots")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SVC_", "PYTHON", "VIRTUAL_ENV"))}
    script = "set -eu\numask 022\n" + "\n".join(steps(str(folder)))
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script],
        env=kept,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as holder:
        assert holder.stdin and holder.stdout and holder.stderr
        try:
            assert holder.stdout.readline() == b"built\n", holder.stderr.read().decode()
            root = f"{folder}/{len(stages()) - 1}"
            user = values(stages()[-1], "USER")[-1]
            script = f"chown {user} {data}; mount --bind {data} {root}/data; mount -o remount,ro {root}"
            subprocess.run([*inside(holder.pid), "sh", "-euc", script], check=True)
            yield Image(holder.pid, root, data)
        finally:
            holder.stdin.close()


@pytest.mark.timeout(300)
def test_image_serves_from_a_read_only_root(image: Image, tmp_path: Path) -> None:
    final = stages()[-1]
    env = {**environment(), "SVC_PORT": "0", "PYTHONPATH": ""}
    health = json.loads(values(final, "HEALTHCHECK")[0].partition("CMD ")[2])

    def healthy() -> bool:
        return (
            subprocess.run(image.inside(*health), env={**os.environ, **env}, capture_output=True, timeout=30).returncode
            == 0
        )

    assert not healthy()
    program = json.loads(values(final, "CMD")[0])
    with running_server_sync(tmp_path, env, (*BECOME, *image.inside(*program))) as server:
        server.ca = image.data / "tls" / "ca.pem"
        assert httpx.get(f"{server.base_url}/healthz", verify=server.tls or False).json()["status"] == "ok"
        status = (Path("/proc") / str(server.pid) / "status").read_text()
        assert "Uid:\t10001\t10001\t10001\t10001" in status and "CapEff:\t0000000000000000" in status
        assert healthy()
        refused = subprocess.run(image.inside("touch", "/opt/svc/x", "/tmp/x"), capture_output=True, text=True)
        assert refused.stderr.count("Read-only file system") == 2
        server.process.terminate()
        assert server.process.wait(10) == 0
    assert not healthy()


@pytest.mark.timeout(300)
def test_backup_is_restored_into_another_volume(image: Image, tmp_path: Path) -> None:
    """Follow svc/deploy/README.md: back up a running container, and restore into a new volume."""
    env = {**environment(), "SVC_PORT": "0", "PYTHONPATH": ""}

    def svc(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[bytes]":
        with (tmp_path / "backup.tar").open("rb") as stdin:
            command = image.inside("svc", *arguments)
            return subprocess.run(
                command,
                env={**os.environ, **env, "TMPDIR": "", **variables},
                stdin=stdin,
                capture_output=True,
                timeout=60,
            )

    (tmp_path / "backup.tar").touch()
    with running_server_sync(tmp_path, env, (*BECOME, *image.inside("svc", "serve"))) as server:
        server.ca = image.data / "tls" / "ca.pem"
        refused = svc("backup", "-")
        assert (
            refused.returncode == 1
            and refused.stderr.count(b"\n") == 1
            and b"No usable temporary directory" in refused.stderr
        )
        made = svc("backup", "-", TMPDIR="/data")
        assert made.returncode == 0, made.stderr
        assert svc("backup", "/data/backup.tar").returncode == 0
    (tmp_path / "backup.tar").write_bytes(made.stdout)
    volume = tmp_path / "volume"
    volume.mkdir()
    os.chown(volume, 10001, 10001)
    subprocess.run([*inside(image.pid), "mount", "--bind", str(volume), f"{image.root}/data"], check=True)
    try:
        restored = svc("restore", "-")
        assert restored.returncode == 0, restored.stderr
        assert svc("check").stdout.startswith(b"ok: ")
        with running_server_sync(tmp_path, env, (*BECOME, *image.inside("svc", "serve"))) as server:
            server.ca = volume / "tls" / "ca.pem"
            assert server.ca.read_bytes() == (image.data / "tls" / "ca.pem").read_bytes()
            assert httpx.get(f"{server.base_url}/healthz", verify=server.tls or False).status_code == 200
    finally:
        subprocess.run([*inside(image.pid), "umount", f"{image.root}/data"], check=True)


@pytest.mark.timeout(600)
def test_podman_builds_the_image_and_runs_it_read_only_and_healthy() -> None:
    base = values(stages()[-1], "FROM")[0]
    if not shutil.which("podman") or subprocess.run(["podman", "image", "exists", base]).returncode:
        pytest.skip(f"needs podman, and what the image is built from: podman pull {base}")

    def podman(*arguments: str) -> str:
        done = subprocess.run(["podman", *arguments], capture_output=True, text=True, timeout=500)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    built = podman("build", "-q", "--network=host", "--pull=never", "--format=docker", f"--file={FILE}", str(ROOT))
    container = podman("run", "--detach", "--read-only", "--network=host", "--env=SVC_PORT=0", built)
    try:
        deadline = time.monotonic() + 60
        while not podman("logs", container).startswith("listening on"):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        podman("healthcheck", "run", container)
        assert podman("exec", container, "id", "-u") == "10001"
        podman("stop", container)
        assert podman("inspect", "--format={{.State.ExitCode}}", container) == "0"
    finally:
        podman("rm", "--force", "--volumes", container)
        podman("rmi", built)
