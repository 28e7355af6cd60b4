"""What newcomers ask the built-in assistant first: the answer is right, or it says that it cannot and what can."""

import re
from typing import Any

import orjson
import pytest

from app import ROUTES
from svc.builtin.assistant import REFERRAL
from svc.routes.pages import STATIC
from tests.conftest import Service
from tests.support.builtin import STRING, Body, agent_run, calls, choice, said, text, tool
from tests.support.cases import each

CANNOT = "For real answers, choose"
SELF = "I can do arithmetic"


def wrote(name: str, content: str) -> tuple[str, dict[str, str]]:
    return "write_artifact", {"name": name, "content": content}


def computed(expression: str) -> tuple[str, dict[str, str]]:
    return "calculate", {"expression": expression}


@each(
    ("question", "answer"),
    [
        *((question, SELF) for question in ("Hello", "Hi there!", "Hi, who are you?", "What can you do?", "help")),
        *((question, SELF) for question in ("Are you ChatGPT?", "Which model is this?", "How do I connect my model?")),
        ("Thank you!", "You are welcome."),
        ("2+2", "2+2 = 4"),
        ("Hello, what is 2 + 2?", "2 + 2 = 4"),
        ("What is 15% of 80?", "= 12"),
        ("15% tip on $84", "= 12.6"),
        ("How much is a 20% tip on a bill of $52.50?", "= 10.5"),
        ("What is 20% of 150?", "= 30"),
        ("What's 18 percent of $1,250?", "= 225"),
        ("What is 17% off $60?", "= 49.8"),
        ("Split a bill of $96 among 4 people", "= 24"),
        ("Increase 80 by 15%", "= 92"),
        ("Reduce 80 by 10 percent", "= 72"),
        ("50 is what percent of 200?", "= 25"),
        ("What percentage of 200 is 50?", "= 25"),
        ("how many days until Christmas?", "34 days"),
        ("How many days until 2027-01-01?", "406 days"),
        ("How many days are left until New Year?", "41 days"),
        ("How long until my birthday on 3 March?", "102 days"),
        ("How many days are there between Christmas and New Year?", "7 days"),
        ("When is Christmas 2026?", "Friday, 25 December 2026"),
        ("What day is it today?", "Today is Friday, 21 November 2025"),
        ("Do you remember my name?", "You have not told me your name"),
        ("Call me Ada. What is my name?", "Your name is Ada."),
        ("Order 66 is lost. What is lost?", 'I remember: "Order 66 is lost."'),
        ("What is the capital of France?", "I cannot answer this."),
        ("Who wrote Hamlet?", "I cannot answer this."),
        ("What's the weather in Paris today?", "I cannot answer this."),
        ("What's the news today?", "I cannot answer this."),
        ("What is the square root of 144?", "I cannot answer this."),
        ("Write a poem about the sea", "I cannot do this: Write a poem about the sea."),
        ("Write a Python function that reverses a string", "I cannot do this: Write a Python function"),
        ("Explain quantum computing in simple terms", "I cannot do this: Explain"),
        ('Translate "good morning" into German', "I cannot do this: Translate"),
        ("Summarise this text: The fox jumps over the dog.", "I cannot do this: Summarise this text"),
        ("Tell me a joke", "I cannot do this: Tell me a joke."),
        ("Can you help me plan a trip to Rome?", "I cannot do this: help me plan a trip to Rome."),
        ("Give me a recipe for pancakes", "I cannot do this: Give me a recipe"),
        ("What is 2 + 2? And write a poem about it", "I cannot do this: write a poem about it."),
    ],
)
async def test_first_question_is_answered_or_refused(question: str, answer: str) -> None:
    found = await text("assistant", question)
    assert answer in found and (CANNOT in found) == answer.startswith(("I can do", "I cannot"))


@each(
    ("goal", "made", "refused"),
    [
        (
            "Find today's top news about SQLite and summarise them",
            [],
            ["Find today's top news about SQLite", "summarise"],
        ),
        ("Research the best laptops and write a report", [], ["Research the best laptops", "write a report"]),
        ("Write a poem about the sea and save it as poem.txt", [], ["Write a poem about the sea"]),
        ("Write a short story about a dragon, and read it aloud", [], ["Write a short story", "read it aloud"]),
        ("Write a python script that prints hello and save it as hello.py", [], ["Write a python script"]),
        ("Translate 'hello' to French and save it", [], ["Translate 'hello' to French", "save it"]),
        ("Plan a trip to Rome and save the plan", [], ["Plan a trip to Rome", "save the plan"]),
        ("Create a to-do list for moving house", [], ["Create a to-do list"]),
        ("Create a report about climate change", [], ["Create a report"]),
        ("Write a note about dogs", [], ["Write a note about dogs"]),
        ("Save the meeting notes to notes.txt", [], ["Save the meeting notes"]),
        ("Summarise my notes", [], ["Summarise my notes"]),
        ("Book a flight to Berlin", [], ["Book a flight"]),
        ("Send an email to Bob", [], ["Send an email"]),
        ("Analyse sales.csv and draw a cat", [("generate_image", {"prompt": "a cat"})], ["Analyse sales.csv"]),
        ("Compute 15% of 80 and write a poem", [computed("15 / 100 * 80")], ["write a poem"]),
        ("Draw a cat", [("generate_image", {"prompt": "a cat"})], []),
        ("Save a note saying buy milk", [wrote("note.txt", "buy milk")], []),
        (
            "Calculate a 15% tip on $84 and save it to tip.txt",
            [computed("15 / 100 * 84"), wrote("tip.txt", "15 / 100 * 84 = 12.6")],
            [],
        ),
        (
            "How many days until 2025-12-25? Save the answer",
            [
                wrote(
                    "note.txt",
                    "There are 34 days between Friday, 21 November 2025 (2025-11-21) and "
                    "Thursday, 25 December 2025 (2025-12-25).",
                )
            ],
            [],
        ),
    ],
)
async def test_first_goal_is_reached_or_refused_and_nothing_is_claimed(
    goal: str, made: list[Any], refused: list[str]
) -> None:
    rounds, final = await agent_run(goal)
    assert [call for calls in rounds for call in calls] == made
    declined = re.findall("I cannot do this: (.*)", final)
    assert len(declined) == len(refused) and all(map(str.startswith, declined, refused)), final
    assert (CANNOT in final) == bool(refused) and ("Saved" in final) == any(
        name == "write_artifact" for name, _ in made
    )


def test_refusal_leads_to_the_card_of_the_page_and_to_the_endpoint() -> None:
    (title,) = re.findall('connectTitle: ("Connect a.*"),', (STATIC / "app" / "texts" / "en" / "first.js").read_text())
    assert title in REFERRAL and "POST /user/providers (see /docs)" in REFERRAL
    assert {("POST", "/user/providers"), ("GET", "/docs")} <= {route[:2] for route in ROUTES}


async def test_run_that_cannot_reach_its_goal_says_so_and_stores_nothing(service: Service) -> None:
    headers = await service.bearer()
    body = {"goal": "Find today's top news about SQLite and summarise them", "model": "builtin/assistant"}
    answer = await service.client.post("/v1/agents/run", json=body, headers=headers)
    final = orjson.loads(answer.text.split("\n\n")[-2].removeprefix("data: "))
    assert (final["type"], final["artifacts"], final["cost_micros"]) == ("final", [], 0)
    assert final["output"].startswith("I cannot do this: Find") and final["output"].endswith(REFERRAL)
    assert (await service.client.get("/artifacts", headers=headers)).json()["data"] == []


async def test_clients_own_tool_does_what_the_assistant_cannot() -> None:
    for offered in (tool("search_news", query=STRING), tool("lookup", "Finds news", query=STRING)):
        rounds, final = await agent_run("Find today's news", [offered], lambda *_: "none today")
        assert [name for calls in rounds for name, _ in calls] == [offered["function"]["name"]]
        assert "none today" in final and "cannot" not in final


# --- the last call of an agent

FINAL = tool("final_answer", "Provides a final answer to the given problem.", answer=STRING)
CALCULATE = tool("calculate", expression=STRING)


def written(*expressions: str) -> list[Body]:
    """Return the message with which smolagents repeats its calls."""
    made = [
        {"id": f"call_{one}", "type": "function", "function": {"name": "calculate", "arguments": {"expression": one}}}
        for one in expressions
    ]
    return [{"role": "assistant", "content": [{"type": "text", "text": f"Calling tools:\n{made}"}]}]


@pytest.mark.parametrize("name", ["final_answer", "finalAnswer", "submit_answer", "attempt_completion"])
async def test_result_is_given_to_the_tool_for_the_final_answer(name: str) -> None:
    last = {**FINAL, "function": {**FINAL["function"], "name": name}}
    rounds, _ = await agent_run("What is 6 * 7?", [CALCULATE, last], lambda *_: "42", tool_choice="required")
    assert rounds == [[computed("6 * 7")], [(name, {"answer": "6 * 7 = 42"})]]
    for goal in ("Hello", "Write a poem"):
        message = (await choice("assistant", goal, tools=[CALCULATE, last], tool_choice="required"))["message"]
        ((called, given),) = calls(message)
        assert called == name and CANNOT in given["answer"]


async def test_smolagents_gets_its_final_answer_with_calls_and_results_as_texts() -> None:
    messages = said("user: New task:\nWhat is 6 * 7?")
    options: Any = {"tools": [CALCULATE, FINAL], "tool_choice": "required", "stop": ["Observation:", "Calling tools:"]}
    assert calls((await choice("assistant", messages, **options))["message"]) == [computed("6 * 7")]
    messages += written("6 * 7") + said("user: Observation:\n42")
    answer = calls((await choice("assistant", messages, **options))["message"])
    assert answer == [("final_answer", {"answer": "6 * 7 = 42"})]


@each(("observed", "answer"), [("5\n20", "2 + 3 = 5\n4 * 5 = 20"), ("a\nb\nc", "2 + 3 = a\nb\nc\n4 * 5 = a\nb\nc")])
async def test_observation_of_several_calls_has_a_line_for_each(observed: str, answer: str) -> None:
    messages = [*said("user: New task:\nWhat is 2 + 3 and 4 * 5?"), *written("2 + 3", "4 * 5")]
    messages += said(f"user: Observation:\n{observed}")
    made = calls((await choice("assistant", messages, tools=[CALCULATE, FINAL], tool_choice="required"))["message"])
    assert made == [("final_answer", {"answer": answer})]


@each(
    "other",
    ["[" * 19_000, "-" * 19_000, "[{}]", "[1]", "7", "", "x" * 30_000, "[{'id': 1, 'function': {}}]", "[{1: 2}]"],
)
async def test_other_text_with_the_words_of_smolagents_is_a_text(other: str) -> None:
    messages = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": f"Calling tools:\n{other}"},
        {"role": "user", "content": "Observation:\nWhat is 2 + 2?"},
    ]
    assert "2 + 2 = 4" in await text("assistant", messages)
