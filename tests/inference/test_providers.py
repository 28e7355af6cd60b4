"""The fields of a user's own provider, one by one, and the box that keeps its key."""

from typing import Any

import pytest

from svc.errors import ApiError
from svc.inference import providers
from svc.inference.providers import KeyBox
from svc.shapes import shape_of
from tests.support.byok import KEY
from tests.support.cases import each

URL = "https://api.example.com/v1"


def checked(**fields: Any) -> dict[str, Any]:
    return shape_of(providers.NewProvider).check({"name": "mine", "base_url": URL, **fields}, "")._asdict()


@each("name", ["a", "7", "my-provider_2", "a" * 63, "0--_"])
def test_slug_is_a_valid_name(name: str) -> None:
    assert checked(name=name)["name"] == name


@each(
    ("given", "kept"),
    [
        ("https://api.example.com", "https://api.example.com"),
        ("https://api.example.com/v1///", "https://api.example.com/v1"),
        ("HTTPS://API.Example.com/V1", "https://api.example.com/V1"),
        ("http://bücher.example/v1", "http://xn--bcher-kva.example/v1"),
        ("http://2130706433:8080/v1", "http://127.0.0.1:8080/v1"),
        ("http://0177.0.1./v1", "http://127.0.0.1/v1"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("http://h/a b", "http://h/a%20b"),
    ],
)
def test_address_is_normalized(given: str, kept: str) -> None:
    assert checked(base_url=given)["base_url"] == kept


@each("models", [None, [], ["org/日本:q4_K_M", "with space", "x" * 300], [f"model-{number}" for number in range(500)]])
def test_model_names_may_be_any_printable_text(models: list[str] | None) -> None:
    assert checked(models=models)["models"] == models


@each("model", [{"id": "a"}, {"kind": "image"}, {"id": "a", "kind": "video"}, {"id": "", "kind": "chat"}])
def test_unknown_kind_is_refused(model: dict[str, str]) -> None:
    with pytest.raises(ApiError) as refused:
        checked(models=["a", model])
    assert refused.value.error["param"].startswith("models[1].")


NOT_TEXT: list[Any] = [1, True, [], {}, ["a"], {"a": "b"}, 0.5]
WRONG: dict[str, list[Any]] = {
    "name": [*NOT_TEXT, *("", " ", "A", "Ümlaut", "a b", "a/b", "-a", "_a", "a.b", "a\n", "a" * 64, "a\0", "٣")],
    "base_url": [
        *NOT_TEXT,
        *(
            "",
            "api.example.com",
            "ftp://h",
            "file:///etc/passwd",
            "//h/v1",
            "javascript:1",
            "http://",
            "https:///v1",
            "http:h",
        ),
        *(
            "http://user@h",
            "http://u:secret@h",
            "http://@h",
            "http://h#secret",
            "http://h/#",
            "http://h?secret",
            "http://h/v1?",
        ),
        *(
            "http://h:0",
            "http://h:65536",
            "http://h:-1",
            "http://h:x",
            "http://h\r\nx:1",
            "http://h\0",
            " http://h",
            "http://a b/",
        ),
        *("http://h\\@evil", "http://256.256.256.256/", "http://09.0.0.1/", "http://[::1", "http://[::1%25lo]/"),
        *("http://\uff11\uff12\uff17.0.0.1/", "http://" + "h" * 2000),
    ],
    "api_key": [*NOT_TEXT, *("", " ", "two secret words", "é-secret", "secret\nbreak", "nul\0secret", "secret" * 700)],
    "models": [
        *("m", "", 1, True, {}, 0.5, [1], [None], [""], ["a", ["b"]], ["a\n"], ["x" * 301], ["\u2028"]),
        [str(number) for number in range(501)],
    ],
}


@each(("field", "value"), [(field, value) for field, values in WRONG.items() for value in values])
def test_invalid_urls_are_refused_by_rule_without_a_quote(field: str, value: Any) -> None:
    for kind in (providers.NewProvider, providers.ProviderChanges):
        with pytest.raises(ApiError) as refused:
            shape_of(kind).check({"name": "mine", "base_url": URL, field: value}, "")
        place = refused.value.error["param"].partition("[")[0]  # of a list the item is named
        expected = "missing_field" if value == [None] else "invalid_value"
        assert (refused.value.code, place) == (expected, field)
        assert "secret" not in str(refused.value)


def test_sealed_key_opens_only_for_its_account_provider_and_secret() -> None:
    box = KeyBox(b"s" * 32)
    sealed = box.seal("user_1", "prov_1", KEY)
    assert box.open("user_1", "prov_1", sealed) == KEY and KEY.encode() not in sealed
    assert sealed != box.seal("user_1", "prov_1", KEY), "the same key never looks the same"
    damaged = [
        sealed[:-1],
        sealed + b"x",
        b"",
        sealed[:12],
        *(sealed[:i] + bytes([sealed[i] ^ 1]) + sealed[i + 1 :] for i in range(len(sealed))),
    ]
    attempts = [
        (box, "user_2", "prov_1", sealed),
        (box, "user_1", "prov_2", sealed),
        (KeyBox(b"t" * 32), "user_1", "prov_1", sealed),
    ]
    attempts += [(box, "user_1", "prov_1", wrong) for wrong in damaged]
    for other, account_id, provider_id, wrong in attempts:
        with pytest.raises(ApiError) as refused:
            other.open(account_id, provider_id, wrong)
        assert refused.value.code == "invalid_value" and KEY not in str(refused.value)
    assert KEY not in repr(box) and "ssss" not in repr(vars(box))
