"""LangChain's ChatOpenAI with the Responses API and ChatAnthropic: invoke, stream, and a tool loop."""

import json
import os
from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

PROMPT = 'say One moment.\ntool calculate {"expression": "12 * 7"}\n---\nsay It is 84.'


class Answer(BaseModel):
    """An answer."""

    value: int


@tool
def calculate(expression: str) -> str:
    """Compute."""
    return "84"


def openai_model(model: str) -> ChatOpenAI:
    return ChatOpenAI(
        model=model, base_url=os.environ["BASE_URL"] + "/v1", api_key=os.environ["KEY"], use_responses_api=True
    )


def anthropic_model(model: str) -> ChatAnthropic:
    return ChatAnthropic(model=model, base_url=os.environ["BASE_URL"], api_key=os.environ["KEY"], max_tokens=200)


def tried(model: Any) -> dict[str, Any]:
    echo, coder = model("builtin/echo"), model("thinker").bind_tools([calculate])
    streamed = "".join(chunk.text for chunk in echo.stream("Hello, stream"))
    messages = [HumanMessage(PROMPT)]
    asked = coder.invoke(messages)
    (call,) = asked.tool_calls
    messages += [asked, ToolMessage(calculate.invoke(call["args"]), tool_call_id=call["id"])]
    answered = coder.invoke(messages)
    structured = model("coder").with_structured_output(Answer, method="json_schema")
    return {
        "invoked": echo.invoke("Hello there").text,
        "streamed": streamed,
        "call": [call["name"], call["args"]],
        "answered": answered.text,
        "structured": structured.invoke('say {"value": 84}').value,
        "tokens": answered.usage_metadata["total_tokens"],
    }


print(json.dumps({"openai": tried(openai_model), "anthropic": tried(anthropic_model)}))
