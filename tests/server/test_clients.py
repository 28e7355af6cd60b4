"""The examples of the pages: each is run by a test, and the files in them load."""

import re
from pathlib import Path

from svc.inference.catalog_file import read_file
from tests.support.pages import DEPLOYMENT, EXAMPLES, GROWING, README, REFERENCE

CATALOGS = {mark for mark in EXAMPLES if mark.startswith("catalog-")}  # tests/inference/test_catalog.py loads them


def test_documented_examples_are_all_run() -> None:
    run = {
        "start",
        "tests",
        "curl",
        "openai",
        "catalog",
        "groups",
        "tool-servers",
        "search",
        "hearing",
        "transcriptions",
        "prometheus",
        "byok-curl",
        "agent-curl",
        "codex",
        "coding-agents",
        "media-curl",
        "transcription-curl",
        "agent-python",
        "agent-javascript",
        "fail2ban",
        "renewal-hook",
        "team-catalog",
        "team-commands",
        "team-month",
        "team-settings",
        "trust-chrome",
        "replica-secrets",
        "litestream",
        "litestream-unit",
        "lost-machine",
        "prometheus-proxy",
        "second-service",
    }
    assert set(EXAMPLES) == run | CATALOGS
    assert len(
        re.findall(r"^```(?:sh|python|js|toml|yaml|ini)$", README + REFERENCE + GROWING + DEPLOYMENT, re.MULTILINE)
    ) == len(EXAMPLES)


def test_catalog_of_the_readme_loads(tmp_path: Path) -> None:
    (tmp_path / "catalog.toml").write_text(EXAMPLES["catalog"])
    models, listed, default_model, *_ = read_file(tmp_path / "catalog.toml", {"OLLAMA_KEY": "x"})
    assert [model.id for model in models] == [default_model] == ["ollama/llama3.2"] and listed == []


def test_tool_servers_of_the_reference_load(tmp_path: Path) -> None:
    (tmp_path / "catalog.toml").write_text('[[groups]]\nname = "staff"\n' + EXAMPLES["tool-servers"])
    (server,) = read_file(tmp_path / "catalog.toml", {"WIKI_KEY": "x"}).tool_servers
    assert (server.name, server.micros_per_call, server.groups) == ("wiki", 500, ("staff",))


def test_search_and_speech_recognition_of_the_reference_load(tmp_path: Path) -> None:
    for name in ("model.bin", "config.json", "tokenizer.json"):
        (tmp_path / name).touch()
    text = "\n".join(EXAMPLES[mark] for mark in ("search", "hearing", "transcriptions"))
    text = text.replace("/srv/models/faster-whisper-small", str(tmp_path))
    (tmp_path / "catalog.toml").write_text(text)
    offer = read_file(tmp_path / "catalog.toml", {"BRAVE_KEY": "x", "OPENAI_API_KEY": "y"})
    assert offer.search is not None and offer.hearing_folder == tmp_path
    (model,) = offer.models
    assert (model.id, model.kind, model.paid) == ("openai/whisper-1", "transcription", True)


def test_groups_of_the_reference_load(tmp_path: Path) -> None:
    (tmp_path / "catalog.toml").write_text(EXAMPLES["groups"])
    groups = read_file(tmp_path / "catalog.toml", {}).groups
    assert groups is not None and groups.matching("ada@research.example") == "research"
    assert groups.of("research").allows("openai/gpt-5") and not groups.of(None).allows("openai/gpt-5")
    assert groups.of("research").allowance_micros == 20_000_000 and not groups.of("guests").own_providers
