"""svc/inference/catalog.py: the operator's file, and the model servers that are asked for their own lists."""

import asyncio
import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import ApiError, StartError, UpstreamFault
from svc.inference import catalog_file
from svc.inference.catalog import (
    LOCAL_SERVERS,
    PRICES,
    REQUIRED_PRICES,
    Catalog,
    ListedModels,
    Model,
    Offer,
    Provider,
)
from svc.inference.catalog_file import local_servers, read_file
from tests.support.cases import each
from tests.support.loop_clock import advance_loop, hastened
from tests.support.pages import EXAMPLES
from tests.support.waiting import until

SECRET = "sk-hunter2-hunter2"

EXAMPLE = """
default_model = "ollama/llama3.2"
[[providers]]
name = "ollama"                        # slug
base_url = "http://127.0.0.1:11434/v1"
api_key_env = "OLLAMA_KEY"             # or api_key
timeout_seconds = 120                  # to the first byte, and between bytes
[[providers.models]]
id = "llama3.2"                        # upstream's name; here it is ollama/llama3.2
kind = "chat"                          # chat | image | speech
input_micros_per_million_tokens = 0
output_micros_per_million_tokens = 0
# image: micros_per_image; speech: micros_per_thousand_audio_tokens
fallback = "other/model"
"""
OTHER = """
[[providers]]
name = "other"
base_url = "https://models.example/api/v1/"
api_key = "sk-hunter2-hunter2"
[[providers.models]]
id = "model"
output_micros_per_million_tokens = 1500000
[[providers.models]]
id = "painter"
kind = "image"
micros_per_image = 20000
[[providers.models]]
id = "org/speaker:v1"
kind = "speech"
micros_per_thousand_audio_tokens = 10000
"""


def read(tmp_path: Path, text: str | bytes, environ: Mapping[str, str] | None = None) -> Any:
    path = tmp_path / "catalog.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_file(path, {"OLLAMA_KEY": SECRET} if environ is None else environ)


async def never_asked(provider: Provider) -> ListedModels:
    raise AssertionError("nobody should be asked")


def made(read_catalog: Any, builtin: tuple[Model, ...] = ()) -> Catalog:
    return Catalog(read_catalog._replace(models=[*builtin, *read_catalog.models]), never_asked, 0)


# --- the file


PRICED = "input_micros_per_million_tokens = 100\noutput_micros_per_million_tokens = 200\n"


async def test_listed_models_have_the_price_of_their_provider(tmp_path: Path) -> None:
    models, listed, *_ = read(tmp_path, f"[[providers]]\n{PROVIDER}api_key = 'x'\n{PRICED}")
    assert models == [] and [provider.configured for provider in listed] == [True]

    async def ask(provider: Provider) -> ListedModels:
        return {"m": None}

    found = await Catalog(Offer([], listed), ask, 0).find("a/m")
    assert found is not None and list(found.prices.values()) == [100, 200]


@each(
    ("entries", "told"),
    [
        ("api_key = 'x'\n", "a: with an API key and without"),
        ("api_key_env = 'OLLAMA_KEY'\n", "input_micros_per_million_tokens and output_micros_per_million_tokens"),
        (f"{PRICED}models = []\n", "a: input_micros_per_million_tokens is for a provider without models"),
        ("input_micros_per_million_tokens = -1\n", "must be an integer"),
    ],
)
def test_listed_models_of_a_provider_with_a_key_need_a_price(tmp_path: Path, entries: str, told: str) -> None:
    with pytest.raises(StartError, match=told):
        read(tmp_path, f"[[providers]]\n{PROVIDER}{entries}")


def test_listed_models_are_free_without_a_key_or_with_price_0(tmp_path: Path) -> None:
    for entries in ("", "api_key = 'x'\ninput_micros_per_million_tokens = 0\n"):
        _, (listed,), *_ = read(tmp_path, f"[[providers]]\n{PROVIDER}{entries}")
        assert listed.model("m").prices == dict.fromkeys(REQUIRED_PRICES["chat"], 0) and not listed.model("m").paid


async def test_prices_and_marks_of_the_cache_stand_at_a_provider_or_a_model(tmp_path: Path) -> None:
    cached = "cached_input_micros_per_million_tokens"
    required = dict.fromkeys(REQUIRED_PRICES["chat"], 0)
    entries = f"api_key = 'x'\noutput_micros_per_million_tokens = 5\n{cached} = 3\ncache_control = true\n"
    (_, (listed,), *_) = read(tmp_path, f"[[providers]]\n{PROVIDER}{entries}")
    model = listed.model("m")
    assert model.cache_control and model.prices == {**required, "output_micros_per_million_tokens": 5, cached: 3}
    own = f"{MODEL}cache_control = false\n{cached} = 0\n[[providers.models]]\nid = 'n'"
    found, *_ = read(tmp_path, f"[[providers]]\n{PROVIDER}cache_control = true\n{own}")
    assert [(model.cache_control, model.prices) for model in found] == [
        (False, {**required, cached: 0}),
        (True, required),
    ]
    assert not found[0].paid, "a price of 0 for cached input is no price"


def test_format_of_a_server_stands_at_a_provider_or_a_model(tmp_path: Path) -> None:
    entries = f'{PROVIDER}api = "messages"\n{MODEL}[[providers.models]]\nid = "n"\napi = "responses"'
    models, *_ = read(tmp_path, f"[[providers]]\n{entries}\n[[providers]]\nname = 'b'\nbase_url = 'http://b/v1'")
    assert [model.api for model in models] == ["messages", "responses"]
    _, (listed,), *_ = read(tmp_path, f"[[providers]]\n{PROVIDER}api = 'responses'\n")
    assert listed.model("m").api == "responses"
    _, (listed,), *_ = read(tmp_path, f"[[providers]]\n{PROVIDER}")
    assert listed.model("m").api == "chat"


def test_efforts_and_the_output_limit_stand_at_a_model(tmp_path: Path) -> None:
    entries = f"{PROVIDER}{MODEL}efforts = ['high', 'low', 'high']\nmax_output_tokens = 99\n"
    ((model,), *_) = read(tmp_path, f"[[providers]]\n{entries}")
    assert (model.efforts, model.max_output_tokens) == (("high", "low"), 99)


async def test_documented_example_loads(tmp_path: Path) -> None:
    catalog = made(read(tmp_path, EXAMPLE + OTHER))
    assert catalog.default_model() == "ollama/llama3.2"
    assert [model.id for model in await catalog.models()] == [
        "ollama/llama3.2",
        "other/model",
        "other/painter",
        "other/org/speaker:v1",
    ]
    llama = await catalog.find("ollama/llama3.2")
    assert llama is not None and llama.provider is not None
    assert (llama.name, llama.kind, llama.fallback) == ("llama3.2", "chat", "other/model")
    assert llama.provider == Provider("ollama", "http://127.0.0.1:11434/v1", SECRET, 120.0)
    other = await catalog.find("other/model")
    assert other is not None and other.provider is not None
    assert other.provider.base_url == "https://models.example/api/v1" and other.provider.timeout_seconds == 120
    assert other.prices == {"input_micros_per_million_tokens": 0, "output_micros_per_million_tokens": 1_500_000}
    assert other.dearer_than(llama) and not llama.dearer_than(other)


async def test_ids_hold_slashes(tmp_path: Path) -> None:
    catalog = made(read(tmp_path, EXAMPLE + OTHER))
    speaker = await catalog.find("other/org/speaker:v1")
    assert speaker is not None and speaker.name == "org/speaker:v1"


async def test_unknown_id_returns_none(tmp_path: Path) -> None:
    catalog = made(read(tmp_path, EXAMPLE + OTHER))
    for model_id in (
        "",
        "/",
        "ollama",
        "ollama/",
        "ollama/llama3",
        "nobody/llama3.2",
        "llama3.2",
        "OLLAMA/llama3.2",
        "a\0b/c",
        "x" * 10_000,
    ):
        assert await catalog.find(model_id) is None


def test_model_has_the_documented_json(tmp_path: Path) -> None:
    models, *_ = read(tmp_path, EXAMPLE + OTHER)
    assert models[1].as_json(7) == {
        "id": "other/model",
        "object": "model",
        "created": 7,
        "owned_by": "other",
        "kind": "chat",
        "pricing": {"input_micros_per_million_tokens": 0, "output_micros_per_million_tokens": 1_500_000},
        "context_length": None,
        "capabilities": [],
        "provider": "other",
        "byok": False,
    }
    assert Model("builtin/echo", "echo", None, "chat", {}).as_json(7)["owned_by"] == "builtin"
    assert [(*model.as_json(7)["pricing"],) for model in models] == [REQUIRED_PRICES[model.kind] for model in models]


async def test_alias_finds_its_model_and_has_its_own_entry(tmp_path: Path) -> None:
    other = OTHER.replace('id = "model"', 'id = "model"\naliases = ["gpt-5", "claude-sonnet-4-5"]')
    text = EXAMPLE.replace("other/model", "gpt-5").replace("ollama/llama3.2", "claude-sonnet-4-5")
    catalog = made(read(tmp_path, text + other))
    model = await catalog.find("gpt-5")
    assert model is not None and model.id == "other/model"
    assert catalog.configured("claude-sonnet-4-5") is await catalog.find("other/model") is model
    assert [model.id for model in await catalog.models()].count("other/model") == 1
    assert model.as_json(7, "gpt-5") == {**model.as_json(7), "id": "gpt-5", "alias_of": "other/model"}
    assert "alias_of" not in model.as_json(7)
    catalog.load(read(tmp_path, other.replace("gpt-5", "gpt-6")))
    assert await catalog.find("gpt-5") is None and catalog.configured("gpt-6") is not None


def test_repr_hides_keys(tmp_path: Path) -> None:
    assert "hunter2" not in repr(read(tmp_path, EXAMPLE + OTHER))


def test_an_empty_file_is_refused_and_one_with_a_default_model_alone_is_not(tmp_path: Path) -> None:
    for text in ("", "# comments only\n\n"):
        with pytest.raises(StartError, match="is empty"):
            read(tmp_path, text)
    assert read(tmp_path, "default_model = 'builtin/echo'") == Offer([], [], "builtin/echo")


def test_extra_fields_of_a_model_replace_those_of_its_provider(tmp_path: Path) -> None:
    models, listed, *_ = read(
        tmp_path,
        f"[[providers]]\n{PROVIDER}extra_fields = ['service_tier', 'provider', 'models', 'route']\n{MODEL}"
        "[[providers.models]]\nid = 'own'\nextra_fields = ['plugins']\n[[providers.models]]\nid = 'none'\nextra_fields = []\n"
        '[[providers]]\nname = "b"\nbase_url = "http://b"\nextra_fields = ["x"]',
    )
    assert [sorted(model.extra_fields) for model in models] == [
        ["models", "provider", "route", "service_tier"],
        ["plugins"],
        [],
    ]
    assert listed[0].model("m").extra_fields == {"x"}


def test_only_a_provider_without_a_model_list_is_asked(tmp_path: Path) -> None:
    models, listed, *_ = read(
        tmp_path,
        '[[providers]]\nname = "a"\nbase_url = "http://a"\n[[providers]]\nname = "b"\nbase_url = "http://b"\nmodels = '
        "[]",
    )
    assert models == [] and [(provider.name, provider.configured) for provider in listed] == [("a", True)]


PROVIDER = 'name = "a"\nbase_url = "http://a.example/v1"\n'
MODEL = '[[providers.models]]\nid = "m"\n'

WRONG = [
    # the file
    ("this is no TOML", "line 1"),
    (b"\xff\xfe", "cannot be read"),
    ("x = " + "[" * 100_000, "cannot be read"),
    ("defualt_model = 'a/b'", "'defualt_model'"),
    ("default_model = 7", "default_model"),
    ("default_model = ''", "default_model"),
    ("default_model = 'nobody/m'", "'nobody/m'"),
    ("providers = 7", "providers"),
    ("[providers]\nname = 'a'", "providers"),
    ("providers = [7]", "providers"),
    # a provider
    ("[[providers]]", "provider 1"),
    ("[[providers]]\nbase_url = 'http://a'", "provider 1"),
    ("[[providers]]\nname = 'a'", "base_url"),
    *((f"[[providers]]\nbase_url = 'http://a'\nname = {name}", "name") for name in (
        "''", "7", "'A'", "'a/b'", "'a b'", "'-a'", "'ä'", "'builtin'", '"a\\n"', f"'{'a' * 64}'", "['a']", "true")),
    *((f"[[providers]]\nname = 'a'\nbase_url = {url}", "a.base_url") for url in (
        "''", "7", "'a.example'", "'ftp://a'", "'http://'", "'http://u@a'", "'http://:sk-hunter2-hunter2@a'", "'http://u:sk-hunter2-hunter2@a'",
        "'http://a?x=1'", "'http://a#x'", "'http://[::1'", "'http://a:99999'", "'http://a:0'", "'http://a b'", '"http://a\\nb"', '"http://a\\u0000"')),
    (f"[[providers]]\n{PROVIDER}api_key = 'x'\napi_key_env = 'OLLAMA_KEY'", "a: give api_key or api_key_env"),
    (f"[[providers]]\n{PROVIDER}api_key_env = 'NO_SUCH_KEY'", "NO_SUCH_KEY"),
    (f"[[providers]]\n{PROVIDER}api_key = ''", "api_key"),
    (f"[[providers]]\n{PROVIDER}api_key = 7", "api_key"),
    (f'[[providers]]\n{PROVIDER}api_key = "sk-hunter2-hunter2\\n"', "a.api_key"),
    (f"[[providers]]\n{PROVIDER}api_key = 'sk-hunter2-hunter2-ä'", "a.api_key"),
    *((f"[[providers]]\n{PROVIDER}timeout_seconds = {seconds}", "a.timeout_seconds") for seconds in (
        "0", "-1", "3601", "nan", "inf", "'60'", "true", "[]")),
    (f"[[providers]]\n{PROVIDER}timeout = 60", "'timeout'"),
    (f"[[providers]]\n{PROVIDER}models = 7", "a.models"),
    (f"[[providers]]\n{PROVIDER}models = ['m']", "a.models"),
    (f"[[providers]]\n{PROVIDER}[[providers]]\n{PROVIDER}", "'a' is used twice"),
    # a model
    (f"[[providers]]\n{PROVIDER}[[providers.models]]", "a, a model"),
    *((f"[[providers]]\n{PROVIDER}[[providers.models]]\nid = {name}", "a")
      for name in ("''", "7", '"a\\n"', f"'{'x' * 301}'", "['m']")),
    *((f"[[providers]]\n{PROVIDER}{MODEL}kind = {kind}", "a/m.kind") for kind in ("'video'", "''", "7", "[]", "{}", "['chat']")),
    *((f"[[providers]]\n{PROVIDER}{MODEL}{price} = {micros}", price)
      for price in PRICES["chat"] for micros in ("-1", "1.5", "'1'", "true", "1000000000001", "nan", "[]")),
    (f"[[providers]]\n{PROVIDER}{MODEL}micros_per_image = 1", "'micros_per_image'"),
    (f"[[providers]]\n{PROVIDER}{MODEL}kind = 'image'\ninput_micros_per_million_tokens = 1", "'input_micros_per_million_tokens'"),
    (f"[[providers]]\n{PROVIDER}{MODEL}price = 1", "'price'"),
    (f"[[providers]]\n{PROVIDER}{MODEL}fallback = 7", "fallback"),
    (f"[[providers]]\n{PROVIDER}{MODEL}fallback = 'a/m'", "its own fallback"),
    (f"[[providers]]\n{PROVIDER}{MODEL}fallback = 'a/other'", "'a/other'"),
    (f"[[providers]]\n{PROVIDER}{MODEL}fallback = 'builtin/nonsense'", "'builtin/nonsense'"),
    (f"[[providers]]\n{PROVIDER}{MODEL}fallback = 'a/p'\n[[providers.models]]\nid = 'p'\nkind = 'image'", "'a/p'"),
    (f"default_model = 'a/m'\n[[providers]]\n{PROVIDER}{MODEL}kind = 'image'", "'a/m'"),
    # the cache
    *((f"[[providers]]\n{PROVIDER}{MODEL}cache_control = {value}", "a/m.cache_control") for value in ("1", "'yes'", "[]")),
    (f"[[providers]]\n{PROVIDER}cache_control = 'yes'", "a.cache_control"),
    (f"[[providers]]\n{PROVIDER}{MODEL}kind = 'image'\ncache_control = true", "'cache_control'"),
    (f"[[providers]]\n{PROVIDER}{MODEL}kind = 'image'\ncached_input_micros_per_million_tokens = 1", "'cached_input_"),
    (f"[[providers]]\n{PROVIDER}api_key = 'x'\ncached_input_micros_per_million_tokens = 1", "set the prices"),
    # capabilities and context length
    *((f"[[providers]]\n{PROVIDER}{MODEL}{line}", f"a/m.{line.partition(' ')[0]}") for line in (
        "capabilities = 'tools'", "capabilities = ['hearing']", "context_length = 0", "context_length = '8192'",
    )),
    # extra fields
    *((f"[[providers]]\n{PROVIDER}extra_fields = {names}", "a.extra_fields") for names in ("'seed'", "7", "[7]", "['']")),
    *((f"[[providers]]\n{PROVIDER}extra_fields = ['{name}']", f"a.extra_fields must not have '{name}'") for name in (
        "api_base", "base_url", "api_key", "user_config", "extra_headers", "apiKey", "litellm_params", "fallbacks", "model",
        "max_tokens", "n_predict", "numPredict", "ignore_eos")),
    (f"[[providers]]\n{PROVIDER}{MODEL}extra_fields = ['api_base']", "a/m.extra_fields"),
    (f"[[providers]]\n{PROVIDER}{MODEL}kind = 'image'\nextra_fields = ['x']", "'extra_fields'"),
    # aliases
    *((f"[[providers]]\n{PROVIDER}{MODEL}aliases = {aliases}", "a/m.aliases") for aliases in (
        "'gpt-5'", "7", "{}", "['']", "[7]", "['a/m']", "['gpt-5', 'openai/gpt-5']", '["a\\n"]', f"['{'x' * 301}']")),
    (f"[[providers]]\n{PROVIDER}{MODEL}aliases = ['gpt-5', 'gpt-5']", "'gpt-5' is used twice"),
    (f"[[providers]]\n{PROVIDER}{MODEL}aliases = ['s']\n[[providers.models]]\nid = 'n'\naliases = ['s']", "'s' is used twice"),
    (f"[[providers]]\n{PROVIDER}{MODEL}aliases = ['s']\nfallback = 's'", "its own fallback"),
    (f"default_model = 's'\n[[providers]]\n{PROVIDER}{MODEL}kind = 'image'\naliases = ['s']", "'s', the default_model"),
    (f"default_model = 'gpt-5'\n[[providers]]\n{PROVIDER}{MODEL}", "'gpt-5', the default_model"),
    (f"[[providers]]\n{PROVIDER}{MODEL}{MODEL}", "'a/m' is used twice"),
    # the search engine
    ("search = 1", "search must be an object"),
    ("[search]", "search.engine is required"),
    *((f"[search]\nengine = {engine}", "search.engine") for engine in ("'google'", "''", "7", "[]", "true")),
    ("[search]\nengine = 'searxng'", "search.base_url is required"),
    ("[search]\nengine = 'searxng'\nbase_url = 'ftp://a'", "search.base_url"),
    ("[search]\nengine = 'brave'", "search: brave needs api_key or api_key_env"),
    ("[search]\nengine = 'tavily'\nbase_url = 'http://a'", "search: tavily needs api_key or api_key_env"),
    ("[search]\nengine = 'brave'\napi_key_env = 'NO_SUCH_KEY'", "NO_SUCH_KEY"),
    ("[search]\nengine = 'brave'\napi_key = 'sk-hunter2-hunter2-ä'", "search.api_key"),
    ("[search]\nengine = 'brave'\napi_key = 'x'\napi_key_env = 'OLLAMA_KEY'", "search: give api_key or api_key_env"),
    ("[search]\nengine = 'brave'\napi_key = 'x'\nprice = 1", "'price'"),
    *((f"[search]\nengine = 'brave'\napi_key = 'x'\nmicros_per_search = {micros}", "search.micros_per_search")
      for micros in ("-1", "1.5", "'1'", "true", "1000000000001")),
]  # fmt: skip


@each(
    ("entries", "told"),
    [
        (f"api = 'completions'\n{MODEL}", "a.api must be one of chat, responses, messages"),
        (f"{MODEL}api = 'Messages'\n", "a/m.api must be one of chat, responses, messages"),
        (f"{MODEL}api = 1\n", "a/m.api must be one of"),
        (f"{MODEL}kind = 'image'\napi = 'messages'\n", "a/m: 'api' is not known"),
        (f"{MODEL}efforts = []\n", "a/m.efforts must name at least one of none, minimal"),
        (f"{MODEL}efforts = ['huge']\n", "a/m.efforts\\[0\\] must be one of none, minimal"),
        (f"{MODEL}max_output_tokens = 0\n", "a/m.max_output_tokens must be"),
    ],
)
def test_wrong_format_or_effort_stops_the_start(tmp_path: Path, entries: str, told: str) -> None:
    with pytest.raises(StartError, match=told):
        read(tmp_path, f"[[providers]]\n{PROVIDER}{entries}")


@each(("text", "named"), WRONG)
def test_a_wrong_or_unknown_entry_stops_the_start_with_one_line(tmp_path: Path, text: str | bytes, named: str) -> None:
    with pytest.raises(StartError) as caught:
        made(read(tmp_path, text))
    line = str(caught.value)
    assert line.isprintable() and len(line) < 600
    assert named in line
    assert "the catalog" in line and "hunter2" not in line


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=2)
    ),
    st.data(),
)
def test_any_wrong_value_is_one_line(value: Any, data: st.DataObject) -> None:
    document: dict[str, Any] = {
        "default_model": "a/m",
        "providers": [
            {
                "name": "a",
                "base_url": "http://a",
                "models": [{"id": "m", "kind": "chat", "fallback": "a/n"}, {"id": "n"}],
            }
        ],
    }
    place = data.draw(st.sampled_from([document, document["providers"][0], document["providers"][0]["models"][0]]))
    place[data.draw(st.sampled_from(sorted(place)))] = value
    try:
        made(catalog_file._parse(document, {}))
    except (ApiError, ValueError, StartError) as error:
        assert str(error)


def test_a_missing_catalog_file_is_one_line(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing.toml", tmp_path):
        with pytest.raises(StartError, match="cannot be read"):
            read_file(path, {})


async def test_default_and_fallback_may_be_built_in_or_listed(tmp_path: Path) -> None:
    text = f"default_model = 'b/anything'\n[[providers]]\n{PROVIDER}{MODEL}fallback = 'builtin/echo'\n"
    text += "[[providers]]\nname = 'b'\nbase_url = 'http://b'"
    echo = Model("builtin/echo", "echo", None, "chat", dict.fromkeys(PRICES["chat"], 0))
    assert made(read(tmp_path, text), (echo,)).default_model() == "b/anything"
    with pytest.raises(StartError, match="builtin/echo"):
        made(read(tmp_path, text))


# --- model servers that are asked


class Server:
    """A provider's model list, as it is asked for."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)
        self.fault: Exception | None = None
        self.delay_seconds = 0.01
        self.asked = 0

    async def ask(self, provider: Provider) -> ListedModels:
        self.asked += 1
        await asyncio.sleep(self.delay_seconds)
        if self.fault:
            raise self.fault
        return dict.fromkeys(self.names)


LISTED = Provider("lab", "http://lab.example/v1")


def asking(server: Server, configured: bool = True, provider: Provider = LISTED) -> Catalog:
    return Catalog(Offer([], [dataclasses.replace(provider, configured=configured)]), server.ask, 0)


async def test_concurrent_requests_share_one_list() -> None:
    server = Server("m", "org/n")
    catalog = asking(server)
    catalog.start()
    found = await asyncio.gather(
        *(catalog.find("lab/m") for _ in range(50)), *(catalog.find("lab/org/n") for _ in range(50))
    )
    listed = await asyncio.gather(*(catalog.models() for _ in range(50)))
    assert server.asked == 1
    assert {model.id for model in found if model} == {"lab/m", "lab/org/n"} and None not in found
    assert all([model.id for model in models] == ["lab/m", "lab/org/n"] for models in listed)
    assert found[0] is not None and set(found[0].prices.values()) == {0} and found[0].kind == "chat"
    await catalog.close()


async def test_cancelled_request_does_not_cancel_a_shared_list() -> None:
    server = Server("m")
    server.delay_seconds = 0.05
    catalog = asking(server)
    leaving, staying = asyncio.create_task(catalog.find("lab/m")), asyncio.create_task(catalog.find("lab/m"))
    await until(lambda: server.asked)
    leaving.cancel()
    found = await staying
    assert found is not None and leaving.cancelled() and server.asked == 1


async def test_unknown_id_asks_a_listed_provider_at_most_once_a_second() -> None:
    server = Server("m")
    catalog = asking(server)
    for _ in range(20):
        assert await catalog.find("lab/unknown") is None
    assert server.asked == 1


async def test_a_new_model_is_found_within_2_seconds() -> None:
    server = Server("m")
    catalog = asking(server)
    assert await catalog.find("lab/new") is None
    server.names.append("new")
    advance_loop(2)
    assert await catalog.find("lab/new") is not None


async def test_provider_is_used_within_2_seconds_of_its_return() -> None:
    for configured in (True, False):
        server = Server("m")
        server.fault = UpstreamFault("unreachable")
        catalog = asking(server, configured)
        assert await catalog.models() == []
        server.fault = None
        advance_loop(2)
        assert await catalog.models() != []


async def test_failed_list_is_cached_for_a_moment() -> None:
    server = Server("m")
    server.fault = UpstreamFault("unreachable")
    catalog = asking(server)
    for _ in range(20):
        await catalog.models()
        await catalog.find("lab/m")
    assert server.asked == 1


async def test_model_of_a_configured_provider_that_does_not_answer_is_accepted() -> None:
    server = Server()
    server.fault = UpstreamFault("unreachable")
    trusted = await asking(server).find("lab/org/m")
    assert trusted is not None and trusted.provider == LISTED and trusted.name == "org/m"
    assert await asking(server, configured=False).find("lab/m") is None


async def test_known_list_is_kept_after_a_failure() -> None:
    server = Server("m")
    catalog = asking(server)
    await catalog.models()
    server.fault = UpstreamFault("timeout")
    assert await catalog.find("lab/other") is None, "the list is known"
    advance_loop(2)
    assert await catalog.find("lab/other") is not None, "the list is not known any more"
    assert [model.id for model in await catalog.models()] == ["lab/m"]
    assert server.asked == 2


async def test_silent_provider_does_not_delay_requests_for_long() -> None:
    server = Server("m")
    server.delay_seconds = 60
    catalog = asking(server)
    trusted, models = await hastened(asyncio.gather(catalog.find("lab/m"), catalog.models()))
    assert trusted is not None and models == [], "the list had not come yet"
    await catalog.close()


async def test_list_of_a_provider_is_bounded() -> None:
    catalog = asking(Server(*(str(number) for number in range(6000))))
    models = await catalog.models()
    assert len(models) == 5000
    assert models[0].id == "lab/0"


async def test_close_cancels_pending_lists() -> None:
    server = Server("m")
    server.delay_seconds = 60
    catalog = asking(server)
    catalog.start()
    waiting = asyncio.create_task(catalog.models())
    await until(lambda: server.asked)
    await catalog.close()
    assert await asyncio.wait_for(waiting, 1) == []
    assert len(asyncio.all_tasks()) == 1


async def test_local_model_servers_are_tried_on_their_default_ports() -> None:
    assert {provider.base_url for provider in local_servers()} == {
        f"http://127.0.0.1:{port}/v1" for port in (11434, 1234, 8080, 8000)
    }
    assert [provider.name for provider in local_servers()] == list(LOCAL_SERVERS)
    assert not any(provider.configured for provider in local_servers())


async def test_configured_provider_replaces_a_local_server_of_its_name(tmp_path: Path) -> None:
    models, listed, *_ = read(
        tmp_path,
        EXAMPLE.replace('fallback = "other/model"', "") + '[[providers]]\nname = "vllm"\nbase_url = "http://gpu/v1"',
    )
    server = Server("llama3.2", "unpriced")
    catalog = Catalog(Offer(models, [*listed, *local_servers()]), server.ask, 0)
    assert await catalog.find("ollama/unpriced") is None
    vllm = await catalog.find("vllm/unpriced")
    assert vllm is not None and vllm.provider is not None and vllm.provider.base_url == "http://gpu/v1"
    ids = [model.id for model in await catalog.models()]
    assert len(ids) == len(set(ids))
    assert {model_id.partition("/")[0] for model_id in ids} == {"ollama", "vllm", "lmstudio", "llamacpp"}
    sources = {model.id: source for model, source in catalog.offered()}
    assert sources["ollama/llama3.2"] == "catalog" and sources["vllm/unpriced"] == "listed"


async def test_local_server_that_does_not_answer_is_not_shown(tmp_path: Path) -> None:
    models, listed, *_ = read(
        tmp_path,
        EXAMPLE.replace('fallback = "other/model"', "") + '[[providers]]\nname = "gpu"\nbase_url = "http://gpu/v1"',
    )
    catalog = Catalog(Offer(models, [*listed, *local_servers()]), never_asked, 0)
    assert [(provider.name, lists) for provider, lists in catalog.servers()] == [("ollama", False), ("gpu", True)]


async def test_the_operators_names_are_taken(tmp_path: Path) -> None:
    models, listed, *_ = read(tmp_path, EXAMPLE + OTHER)
    catalog = Catalog(Offer(models, [*listed, *local_servers()]), never_asked, 0)
    names = ("builtin", "ollama", "other", "lmstudio", "llamacpp", "vllm")
    assert all(catalog.has_provider(name) for name in names)
    assert not any(catalog.has_provider(name) for name in ("", "mine", "llama3.2"))


def test_provider_names_are_slugs() -> None:
    assert all(re.fullmatch("[a-z0-9_-]+", name) for name in LOCAL_SERVERS)


# --- the examples of svc/OPERATING.md

SERVERS = ("openai", "anthropic", "openrouter", "vllm", "ollama", "llamacpp")


@pytest.mark.parametrize("server", SERVERS)
async def test_example_of_a_model_server_loads_with_its_prices(tmp_path: Path, server: str) -> None:
    environ = {f"{name.upper()}_API_KEY": SECRET for name in SERVERS}
    offer = read(tmp_path, EXAMPLES[f"catalog-{server}"], environ)
    models = [*offer.models, *(provider.model("m") for provider in offer.listed)]
    assert models and {model.owner for model in models} == {server}
    expected = {"openai": "responses", "anthropic": "messages"}
    assert {model.api for model in models} == {expected.get(server, "chat")}
    for model in models:
        assert {*PRICES["chat"][:3]} <= model.prices.keys() and model.paid
        fresh, cached = (model.prices[f"{kind}_micros_per_million_tokens"] for kind in ("input", "cached_input"))
        assert 0 < cached <= fresh
    assert made(offer).dearer_fallbacks() == [], "a fallback that costs more is never asked"


def test_each_example_of_a_catalog_is_tested() -> None:
    marked = {name.removeprefix("catalog-") for name in EXAMPLES if name.startswith("catalog-")}
    assert marked == {*SERVERS}


def test_all_examples_make_one_catalog(tmp_path: Path) -> None:
    text = "\n".join(EXAMPLES[f"catalog-{server}"] for server in SERVERS)
    offer = read(tmp_path, text, {f"{name.upper()}_API_KEY": SECRET for name in SERVERS})
    assert len(offer.models) == 6 and len(offer.listed) == 1
