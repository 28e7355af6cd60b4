"""The table of fields that a model with a price gets."""

from svc.inference.passed_fields import DEMANDS, OTHER_LIMITS, PASSED
from tests.support.cases import each

FORBIDDEN = (
    # other prices
    *("service_tier", "audio", "prompt_cache_retention", "enable_search", "provider", "route", "models"),
    # more tokens than `usage` counts, or than the limit allows
    *("best_of", "use_beam_search", "ignore_eos", "min_tokens", "n_cmpl", "echo", *OTHER_LIMITS),
    # prompts and images of any size from short requests
    *("chat_template", "template", "mm_processor_kwargs", "media_io_kwargs"),
    # parts of the model server that other callers share
    *("lora", "lora_path", "id_slot", "session_params", "priority", "request_id", "custom_logit_processor"),
)


@each("name", FORBIDDEN)
def test_fields_that_cost_more_than_their_tokens_are_not_in_the_table(name: str) -> None:
    assert name not in PASSED


def test_demands_are_not_in_the_table() -> None:
    assert DEMANDS and DEMANDS.isdisjoint(PASSED)
