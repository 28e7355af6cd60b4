"""Run by test_byok_addresses.py in an isolated network, whose DNS server never answers."""

import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from svc.config import Config
from tests.conftest import Service
from tests.inference.test_byok_addresses import answered_beside_silent_names


@pytest.fixture
def config(config: Config) -> Config:
    return replace(config, byok_private=True)


@pytest.fixture
def silent_dns(tmp_path: Path) -> Iterator[socket.socket]:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    subprocess.run(["mount", "--bind", tmp_path / "resolv.conf", "/etc/resolv.conf"], check=True)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 53))
        server.setblocking(False)
        yield server
    subprocess.run(["umount", "/etc/resolv.conf"], check=True)


async def test_silent_dns_server_delays_only_its_account(service: Service, silent_dns: socket.socket) -> None:
    await answered_beside_silent_names(service, "localhost")
    assert b"slow" in silent_dns.recv(1000), "it was asked"
