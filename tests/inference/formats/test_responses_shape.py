"""svc/inference/formats/responses_shape.py: what a request may hold."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from svc.errors import ApiError
from svc.inference.formats.responses_shape import RESPONSE_REQUEST
from tests.support.cases import each

RECORDED = sorted(Path("tests/clients/recorded").glob("codex*.json"))


@each("path", RECORDED)
def test_requests_of_codex_are_accepted(path: Path) -> None:
    body = orjson.loads(path.read_bytes())["body"]
    assert RESPONSE_REQUEST.check(body, "") is body


def test_all_fields_except_input_may_be_null() -> None:
    body: dict[str, Any] = {field.name: None for field in RESPONSE_REQUEST.fields}
    assert RESPONSE_REQUEST.check({**body, "input": "x"}, "")


def test_metadata_holds_at_most_16_pairs_of_short_texts() -> None:
    assert RESPONSE_REQUEST.check({"input": "x", "metadata": {"k" * 64: "v" * 512}}, "")
    for metadata in ({"k" * 65: ""}, {"k": "v" * 513}, {"k": 1}, {str(number): "" for number in range(17)}):
        with pytest.raises(ApiError, match="metadata"):
            RESPONSE_REQUEST.check({"input": "x", "metadata": metadata}, "")
