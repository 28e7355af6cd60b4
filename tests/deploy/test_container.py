"""svc/deploy/Containerfile: what the image is made of, and what it starts."""

import json
import re
import shlex

from svc.config import from_environ
from tests.support.server import ROOT

FILE = ROOT / "svc" / "deploy" / "Containerfile"
Instruction = tuple[str, str]


def stages() -> list[list[Instruction]]:
    """Return the instructions of each stage as (name, rest), without comments and with continued lines joined."""
    text = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", FILE.read_text(), flags=re.MULTILINE))
    found: list[list[Instruction]] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, rest = line.split(maxsplit=1)
        if name == "FROM":
            found.append([])
        found[-1].append((name, rest))
    return found


def values(stage: list[Instruction], name: str) -> list[str]:
    return [rest for found, rest in stage if found == name]


def environment() -> dict[str, str]:
    """What the image sets for the program that it starts."""
    return dict(pair.split("=", 1) for rest in values(stages()[-1], "ENV") for pair in shlex.split(rest))


def test_image_is_pinned_without_secrets_and_unprivileged() -> None:
    allowed = {"FROM", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK", "CMD"}
    assert {name for stage in stages() for name, _ in stage} == allowed
    for stage in stages():
        assert re.match(r"docker\.io/library/python:3\.\d+-slim-\w+( AS \w+)?$", values(stage, "FROM")[0])
    final = stages()[-1]
    uid, gid = values(final, "USER")[-1].split(":")
    assert int(uid) >= 10000 and int(gid) >= 10000
    config = from_environ(environment())
    assert (config.host, str(config.data_dir), values(final, "VOLUME")) == ("0.0.0.0", "/data", ["/data"])
    assert config.metrics_token is None and str(config.port) == values(final, "EXPOSE")[0]
    given = set((ROOT / ".dockerignore").read_text().splitlines())
    assert "*" in given
    for stage in stages():
        for rest in values(stage, "COPY"):
            *sources, _ = rest.split()
            assert not {".", "./", "svc/static/.."} & set(sources), "only what is named is copied"
            if not sources[0].startswith("--from="):
                assert all((ROOT / source).exists() for source in sources)
                assert {f"!{source.partition('/')[0]}" for source in sources} <= given, (
                    "the builder gets what it copies"
                )


def test_image_starts_the_service_and_asks_for_its_health() -> None:
    final = stages()[-1]
    program, *arguments = json.loads(values(final, "CMD")[0])
    assert (program, arguments) == ("svc", ["serve"])
    assert json.loads(values(final, "HEALTHCHECK")[0].partition("CMD ")[2]) == ["svc", "status"]
