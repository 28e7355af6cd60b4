"""The built-in assistant's calendar."""

from tests.support.builtin import text
from tests.support.cases import each


@each(
    ("question", "answer"),
    [
        ("what is 12 * (3 + 4)?", "12 * (3 + 4) = 84"),
        ("Compute 2/3", "2/3 = 0.6666666666666666666666666667"),
        ("What is 15% of 80?", "15 / 100 * 80 = 12"),
        ("3 times 4 plus 2", "3 * 4 + 2 = 14"),
        ("(what is 2 + 2)", "2 + 2 = 4"),
        ("What is 1,000 * 3?", "1000 * 3 = 3000"),
        ("Add 2 and 3", "2 + 3 = 5"),
        ("what is 3 cubed", "3 ** 3 = 27"),
        ("2 to the power of 5", "2 ** 5 = 32"),
        ("Thanks!", "You are welcome."),
        ("Remember that tea is at 5", "Noted."),
        ("what is 9**9**9", "9**9**9 cannot be computed: A number in the calculation has more than 1,000 digits."),
        ("1/0=", "1/0 cannot be computed: Division by zero."),
        ("what day is today", "Today is Friday, 21 November 2025 (2025-11-21)."),
        ("what is the date in 10 days", "10 days from today: Monday, 1 December 2025 (2025-12-01)."),
        ("what was the date 2 months ago?", "2 months ago from today: Sunday, 21 September 2025 (2025-09-21)."),
        (
            "what date is a month after January 31, 2024",
            "a month counted from 2024-01-31: Thursday, 29 February 2024 (2024-02-29).",
        ),
        ("What is tomorrow's date?", "Tomorrow is Saturday, 22 November 2025 (2025-11-22)."),
        ("What date is next Friday?", "Next Friday is Friday, 28 November 2025 (2025-11-28)."),
        ("what date was last friday", "Last friday is Friday, 14 November 2025 (2025-11-14)."),
        ("which day of the week was 29 February 2024?", "2024-02-29 is a Thursday, 29 February 2024 (2024-02-29)."),
        ("what is the date in 9999999 years", "There is no such date in my calendar, which knows the years 1 to 9999."),
        ("what time is it?", "It is 14:00 UTC on Friday, 21 November 2025 (2025-11-21)."),
        ("My name is Ada. What is my name?", "Your name is Ada."),
        ("What is my name?", "You have not told me your name in this conversation."),
        ("Say this is a test", "this is a test"),
        ("What is 2+2? And what day is it?", "2+2 = 4\nToday is Friday, 21 November 2025 (2025-11-21)."),
    ],
)
async def test_assistant_knows_arithmetic_and_dates(question: str, answer: str) -> None:
    answered = await text("assistant", question)
    assert answered[0].upper() + answered[1:] == answer[0].upper() + answer[1:]


async def test_days_between_dates_are_counted() -> None:
    assert "34 days" in await text("assistant", "How many days until 2025-12-25?")
    assert "366 days" in await text("assistant", "how many days between 1 January 2024 and January 1st, 2025")
