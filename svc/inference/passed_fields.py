"""The fields of a chat request that an operator's model with a price gets.

They change neither the price of a token nor how many tokens there are beyond what `usage` counts. The documents name
more fields. Left out are other limits of the output, and `best_of` and beam search, whose tokens `usage` does not
count. A template could make a long prompt of a short request with a loop, and so could parameters of image processors.
Adapters, slots and sessions of the model server are shared by all callers.
"""

from collections.abc import Mapping
from typing import Any


def not_null(holder: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return those of the named fields that are there and not null."""
    return {name: holder[name] for name in names if holder.get(name) is not None}


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def bare(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")  # like Go, which reads U+017F as s and U+212A as k


# https://platform.openai.com/docs/api-reference/chat/create
_OPENAI = words(
    """
    model messages stream stream_options max_tokens max_completion_tokens n temperature top_p seed stop presence_penalty
    frequency_penalty logit_bias logprobs top_logprobs tools tool_choice parallel_tool_calls functions function_call
    response_format reasoning_effort verbosity prediction prompt_cache_key store metadata user safety_identifier
    modalities
    """
)
# https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html#chat-api
_VLLM = words(
    """
    top_k min_p repetition_penalty length_penalty stop_token_ids include_stop_str_in_output skip_special_tokens
    spaces_between_special_tokens truncate_prompt_tokens allowed_token_ids bad_words add_generation_prompt
    continue_final_message add_special_tokens documents chat_template_kwargs include_reasoning structured_outputs
    structural_tag guided_json guided_regex guided_choice guided_grammar guided_decoding_backend
    guided_whitespace_pattern return_tokens_as_token_ids thinking_token_budget cache_salt
    """
)
# https://docs.sglang.io/basic_usage/sampling_params.html, https://docs.sglang.io/basic_usage/openai_api_completions.html
_SGLANG = words(
    """
    top_k min_p repetition_penalty stop_token_ids stop_regex no_stop_trim skip_special_tokens
    spaces_between_special_tokens regex ebnf json_schema structural_tag continue_final_message chat_template_kwargs
    separate_reasoning stream_reasoning
    """
)
# https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
_LLAMA_CPP = words(
    """
    top_k min_p typical_p dynatemp_range dynatemp_exponent repeat_penalty repeat_last_n dry_multiplier dry_base
    dry_allowed_length dry_penalty_last_n dry_sequence_breakers xtc_probability xtc_threshold mirostat mirostat_tau
    mirostat_eta grammar json_schema samplers n_probs min_keep n_keep post_sampling_probs t_max_predict_ms cache_prompt
    reasoning_format thinking_forced_open parse_tool_calls chat_template_kwargs
    """
)
# https://docs.ollama.com/api/openai-compatibility, https://docs.ollama.com/modelfile#valid-parameters-and-values
_OLLAMA = words(
    """
    options format think reasoning num_ctx num_keep top_k top_p min_p typical_p tfs_z repeat_penalty repeat_last_n
    penalize_newline mirostat mirostat_eta mirostat_tau seed stop temperature
    """
)
# https://openrouter.ai/docs/api-reference/parameters, https://openrouter.ai/docs/use-cases/reasoning-tokens,
# https://openrouter.ai/docs/features/prompt-caching (svc/inference/cache_marks.py says which models get the marks)
_OPENROUTER = words(
    """
    top_k top_a min_p repetition_penalty reasoning include_reasoning structured_outputs transforms verbosity
    cache_control
    """
)
# Reasoning of models behind these servers: https://api-docs.deepseek.com/guides/thinking_mode,
# https://docs.litellm.ai/docs/reasoning_content, https://help.aliyun.com/zh/model-studio/deep-thinking
_REASONING = words("thinking enable_thinking thinking_budget")
# Proxies spread it at the top: https://docs.litellm.ai/docs/completion/provider_specific_params
_SPREAD = words("extra_body")

PASSED = _OPENAI | _VLLM | _SGLANG | _LLAMA_CPP | _OLLAMA | _OPENROUTER | _REASONING | _SPREAD

# Tools that a vendor runs, and charges by the call. Its names for them have dates and other endings.
HOSTED_TOOLS = ("web_search", "web_fetch", "code_execution", "file_search", "image_generation")


def hosted_family(kind: str) -> str | None:
    """Return the name in HOSTED_TOOLS for the type of a tool, such as `web_search_20250305`, or None."""
    kind = kind.replace("code_interpreter", "code_execution")  # OpenAI's
    return next((family for family in HOSTED_TOOLS if kind.startswith(family)), None)


# What demands another price: OpenAI's and OpenRouter's search and plugins, xAI's search
# (https://platform.openai.com/docs/guides/tools-web-search, https://openrouter.ai/docs/features/plugins,
# https://docs.x.ai/docs/guides/live-search).
DEMANDS = words("web_search_options plugins search_parameters")

# Other names of the output limit, for a request that has none of OpenAI's.
OTHER_LIMITS = ("n_predict", "num_predict", "max_new_tokens", "max_output_tokens")
