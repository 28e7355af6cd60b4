"""The helper process of a GGUF file without a model: it refuses to run alone, and names a file that is none."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from svc.inference.local.model import HELPER
from tests.support.server import ROOT

ORDER = {"key": "k", "context_length": 64, "parallel": 1, "threads": 1, "gpu_layers": None}


def run(path: Path, parent: int) -> "subprocess.CompletedProcess[str]":
    order: dict[str, Any] = {**ORDER, "path": str(path), "parent": parent}
    given = json.dumps(order) + "\n"
    return subprocess.run(HELPER, cwd=ROOT, input=given, capture_output=True, text=True, timeout=60)


def test_helper_of_a_service_that_has_ended_ends(tmp_path: Path) -> None:
    done = run(tmp_path / "one.gguf", parent=1)
    assert (done.returncode, done.stdout) == (1, "") and "the service has ended" in done.stderr


def test_file_that_llama_cpp_cannot_load_ends_the_helper_with_a_log(tmp_path: Path) -> None:
    (tmp_path / "one.gguf").write_bytes(b"GGUF" + bytes(100))
    done = run(tmp_path / "one.gguf", os.getpid())
    assert done.returncode == 1 and done.stdout == "" and "one.gguf" in done.stderr
