"""The OpenAI Agents SDK with its default model class (Responses): an agent with a tool, run whole and as a stream."""

import asyncio
import json
import os

from agents import Agent, Runner, function_tool, set_default_openai_client, set_tracing_disabled
from openai import AsyncOpenAI
from pydantic import BaseModel

EXPRESSIONS = []
PROMPT = 'tool calculate {"expression": "12 * 7"}\n---\nsay It is 84.'


class Answer(BaseModel):
    value: int


@function_tool
def calculate(expression: str) -> str:
    """Compute."""
    EXPRESSIONS.append(expression)
    return "84"


async def main() -> None:
    set_tracing_disabled(True)
    set_default_openai_client(AsyncOpenAI(base_url=os.environ["BASE_URL"] + "/v1", api_key=os.environ["KEY"]))
    agent = Agent(name="Counter", instructions="Use the tool.", tools=[calculate], model="coder")
    whole = await Runner.run(agent, PROMPT)
    streamed = Runner.run_streamed(agent, PROMPT)
    kinds = {event.type async for event in streamed.stream_events()}
    structured = Agent(name="Teller", model="coder", output_type=Answer)
    answer = await Runner.run(structured, 'say {"value": 84}')
    built_in = await Runner.run(Agent(name="Echo", model="echo"), "Hello")
    result = {
        "built_in": built_in.final_output,
        "value": answer.final_output.value,
        "whole": whole.final_output,
        "streamed": streamed.final_output,
        "expressions": EXPRESSIONS,
    }
    print(json.dumps({**result, "model": type(agent.model).__name__, "kinds": sorted(kinds)}))


asyncio.run(main())
