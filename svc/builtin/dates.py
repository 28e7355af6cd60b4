"""The assistant's calendar: answers questions about dates, in UTC."""

import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta

# The names in the calendar module depend on the locale.
_WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_MONTH_NAMES = "January February March April May June July August September October November December"
_MONTHS = _MONTH_NAMES.split()
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS)
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_DATE = re.compile(
    r"\b(?:(\d{4})-(\d{2})-(\d{2})"
    rf"|(?:{_DAY} (?:of )?)?({_MONTH})(?: {_DAY})?(?:,? (\d{{4}}))?)\b",
    re.I,
)
_COUNT_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNTS = {"a": 1, "an": 1, **{word: count for count, word in enumerate(_COUNT_WORDS)}}
_OFFSET = re.compile(
    rf"\b(\d{{1,7}}|{'|'.join(_COUNTS)}) (day|week|month|year)s?\b(?: (ago|before|earlier))?",
    re.I,
)
_DAYS_BETWEEN = re.compile(r"\bhow (?:many days|long)\b", re.I)
_TIME = re.compile(r"\bwhat(?:'s| is) the (?:current )?time\b|\bwhat time is it\b|\bcurrent time\b|^time\W*$", re.I)
_TODAY = re.compile(
    r"\b(?:what|which) (?:day|date|weekday)(?: of the week)? (?:is it|is today|do we have)\b"
    r"|\b(?:today's|current) date\b|\bwhat(?:'s| is) today\b|^(?:date|today)\W*$"
    r"|\bwhat(?:'s| is) the (?:current )?(?:date|day)(?: today)?\W*$",
    re.I,
)
_ASKS_DAY = re.compile(r"\b(?:what|which)\b.*\b(?:day|date|weekday)\b|\bwhen is\b", re.I)
_RELATIVE = {"day after tomorrow": 2, "day before yesterday": -2, "tomorrow": 1, "yesterday": -1, "today": 0}
_NAMED_DAY = re.compile(rf"\b(next|last|this|coming) ({'|'.join(_WEEKDAYS)})\b", re.I)


def date_answer(sentence: str, now_seconds: float) -> str | None:
    """Return the answer to a question about time or dates, or None for any other sentence.

    `now_seconds` is Unix time.
    """
    now = datetime.fromtimestamp(now_seconds, UTC)
    if _TIME.search(sentence):
        return f"It is {now:%H:%M} UTC on {_spelled(now.date())}."
    try:
        return _day_answer(sentence, now.date())
    except (ValueError, OverflowError):
        return "There is no such date in my calendar, which knows the years 1 to 9999."


def _day_answer(sentence: str, today: date) -> str | None:
    named = _dates(sentence, today)
    if _DAYS_BETWEEN.search(sentence):
        return _days_between(*(named if named[1:] else [today, *named])[:2]) if named else None
    offset = _OFFSET.search(sentence)
    if offset and re.search(r"\b(?:what|which|when|date|weekday)\b", sentence, re.I):
        since = f"counted from {named[0]}" if named else "from today"
        return f"{_capital(offset[0])} {since}: {_spelled(_moved(named[0] if named else today, offset))}."
    is_today = _TODAY.search(sentence)
    if not is_today and not _ASKS_DAY.search(sentence):
        return None
    if named:
        return f"{named[0]} is a {_spelled(named[0])}."
    if weekday := _NAMED_DAY.search(sentence):
        return f"{_capital(weekday[0])} is {_spelled(_named_day(weekday, today))}."
    for phrase, days in _RELATIVE.items():
        if phrase in sentence.lower():
            return f"{_capital(phrase)} is {_spelled(today + timedelta(days))}."
    return f"Today is {_spelled(today)}." if is_today else None


def _dates(sentence: str, today: date) -> list[date]:
    found = []
    for year, month, day, day_before, name, day_after, year_after in _DATE.findall(sentence):
        if year:
            found.append(date(int(year), int(month), int(day)))
        elif day_before or day_after:
            number = [full[:3] for full in _MONTHS].index(name[:3].capitalize()) + 1
            found.append(date(int(year_after or today.year), number, int(day_before or day_after)))
    return found


def _days_between(first: date, second: date) -> str:
    days = abs((second - first).days)
    count = "is 1 day" if days == 1 else f"are {days} days"
    return f"There {count} between {_spelled(first)} and {_spelled(second)}."


def _moved(base: date, offset: re.Match[str]) -> date:
    count = _COUNTS[offset[1].lower()] if offset[1].lower() in _COUNTS else int(offset[1])
    count, unit = -count if offset[3] else count, offset[2].lower()
    if unit in ("day", "week"):
        return base + timedelta(count * (7 if unit == "week" else 1))
    year, month = divmod(base.year * 12 + base.month - 1 + count * (12 if unit == "year" else 1), 12)
    return date(year, month + 1, min(base.day, monthrange(year, month + 1)[1]))


def _named_day(match: re.Match[str], today: date) -> date:
    """Return the first such day after today, or before it for `last`. `this Friday` may be today."""
    which, weekday = match[1].lower(), _WEEKDAYS.index(match[2].capitalize())
    if which == "last":
        return today - timedelta((today.weekday() - weekday - 1) % 7 + 1)
    first = today if which == "this" else today + timedelta(1)
    return first + timedelta((weekday - first.weekday()) % 7)


def _spelled(day: date) -> str:
    return f"{_WEEKDAYS[day.weekday()]}, {day.day} {_MONTHS[day.month - 1]} {day.year} ({day})"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
