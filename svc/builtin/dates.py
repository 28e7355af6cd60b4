"""The assistant's calendar: answers questions about dates, in UTC."""

import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Not the calendar module's, which speak the locale's language.
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_MONTH = "(" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS) + ")"
_DATE = re.compile(
    rf"\b(\d{{4}})-(\d{{2}})-(\d{{2}})\b"
    rf"|\b(\d{{1,2}})(?:st|nd|rd|th)? (?:of )?{_MONTH}\b(?:,? (\d{{4}})\b)?"
    rf"|\b{_MONTH} (\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (\d{{4}})\b)?",
    re.I,
)
_COUNT_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNTS = {"a": 1, "an": 1, **{word: count for count, word in enumerate(_COUNT_WORDS)}}
_OFFSET = re.compile(rf"\b(\d{{1,7}}|{'|'.join(_COUNTS)}) (day|week|month|year)s?\b(?: (ago|before|earlier))?", re.I)
_WHEN = re.compile(r"\b(?:what|which|when|date|weekday)\b", re.I)
_DAYS_BETWEEN = re.compile(r"\bhow (?:many days|long)\b", re.I)
_TIME = re.compile(r"\bwhat(?:'s| is) the (?:current )?time\b|\bwhat time is it\b|\bcurrent time\b|^time\W*$", re.I)
_TODAY = re.compile(
    r"\b(?:what|which) (?:day|date|weekday)(?: of the week)? (?:is it|is today|do we have)\b|\btoday's date\b|\bcurrent date\b"
    r"|\bwhat(?:'s| is) the (?:current )?(?:date|day)(?: today)?\W*$|\bwhat(?:'s| is) today\b|^(?:date|today)\W*$",
    re.I,
)
_RELATIVE = {"day after tomorrow": 2, "day before yesterday": -2, "tomorrow": 1, "yesterday": -1, "today": 0}
_NAMED_DAY = re.compile(rf"\b(next|last|this|coming) ({'|'.join(_WEEKDAYS)})\b", re.I)
_ASKS_DAY = re.compile(r"\b(?:what|which)\b.*\b(?:day|date|weekday)\b|\bwhen is\b", re.I)


def date_answer(sentence: str, now_seconds: float) -> str | None:
    """The answer to a question about time or dates, None if `sentence` is no such question. `now_seconds` is Unix time."""
    sentence = sentence[:500]
    now = datetime.fromtimestamp(now_seconds, UTC)
    try:
        if _TIME.search(sentence):
            return f"It is {now:%H:%M} UTC on {_spelled(now.date())}."
        return _day_answer(sentence, now.date())
    except (ValueError, OverflowError):
        return "There is no such date in my calendar, which knows the years 1 to 9999."


def _day_answer(sentence: str, today: date) -> str | None:
    named = [_date(match, today) for match in _DATE.finditer(sentence)]
    if _DAYS_BETWEEN.search(sentence):
        return _days_between(named, today) if named else None
    offset = _OFFSET.search(sentence)
    if offset and _WHEN.search(sentence):
        base = named[0] if named else today
        return f"{_capital(offset[0])}{_of(named)}: {_spelled(_moved(base, offset))}."
    if not _ASKS_DAY.search(sentence) and not _TODAY.search(sentence):
        return None
    if named:
        return f"{named[0].isoformat()} is a {_spelled(named[0])}."
    weekday = _NAMED_DAY.search(sentence)
    if weekday:
        return f"{_capital(weekday[0])} is {_spelled(_named_day(weekday, today))}."
    for phrase, days in _RELATIVE.items():
        if phrase in sentence.lower():
            return f"{_capital(phrase)} is {_spelled(today + timedelta(days=days))}."
    return f"Today is {_spelled(today)}." if _TODAY.search(sentence) else None


def _date(match: re.Match[str], today: date) -> date:
    year, month, day, day_first, month_after, year_after, month_first, day_after, year_last = match.groups()
    if year:
        return date(int(year), int(month), int(day))
    name = (month_after or month_first)[:3].capitalize()
    number = next(index for index, full in enumerate(_MONTHS, 1) if full.startswith(name))
    return date(int(year_after or year_last or today.year), number, int(day_first or day_after))


def _days_between(named: list[date], today: date) -> str:
    first, second = (named[0], named[1]) if len(named) > 1 else (today, named[0])
    days = abs((second - first).days)
    unit = "day" if days == 1 else "days"
    return f"There {'is' if days == 1 else 'are'} {days} {unit} between {_spelled(first)} and {_spelled(second)}."


def _moved(base: date, offset: re.Match[str]) -> date:
    count = _COUNTS.get(offset[1].lower(), -1)
    if count < 0:
        count = int(offset[1])
    if offset[3]:
        count = -count
    unit = offset[2].lower()
    if unit in ("day", "week"):
        return base + timedelta(days=count * (7 if unit == "week" else 1))
    months = base.year * 12 + base.month - 1 + count * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    return date(year, month + 1, min(base.day, monthrange(year, month + 1)[1]))


def _named_day(match: re.Match[str], today: date) -> date:
    """`next Friday` is the first Friday after today, `last Friday` the last one before it, `this` may be today."""
    weekday = _WEEKDAYS.index(match[2].capitalize())
    which = match[1].lower()
    if which == "last":
        return today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)
    first = today if which == "this" else today + timedelta(days=1)
    return first + timedelta(days=(weekday - first.weekday()) % 7)


def _of(named: list[date]) -> str:
    return f" counted from {named[0].isoformat()}" if named else " from today"


def _spelled(day: date) -> str:
    return f"{_WEEKDAYS[day.weekday()]}, {day.day} {_MONTHS[day.month - 1]} {day.year} ({day.isoformat()})"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
