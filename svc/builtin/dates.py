"""The assistant's calendar: answers questions about dates, in UTC."""

import re
from calendar import day_name, month_name, monthrange
from datetime import UTC, date, datetime, timedelta

_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in month_name[1:])
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_DATE = re.compile(
    rf"(?i)\b(?:(\d{{4}}-\d{{2}}-\d{{2}})|(?:{_DAY} (?:of )?)?({_MONTH})(?: {_DAY})?(?:,? (\d{{4}}))?)\b"
)
_COUNT_WORDS = "a two three four five six seven eight nine ten"
_COUNTS = {"an": 1, "one": 1, **{word: count for count, word in enumerate(_COUNT_WORDS.split(), 1)}}
_OFFSET = re.compile(rf"(?i)\b(\d{{1,7}}|{'|'.join(_COUNTS)}) (day|week|month|year)s?\b(?: (ago|before|earlier))?")
_TIME = re.compile(r"(?i)\bwhat(?:'s| is) the (?:current )?time\b|\bwhat time is it\b|\bcurrent time\b|^time\W*$")
_TODAY = re.compile(
    r"(?i)\b(?:what|which) (?:day|date|weekday)(?: of the week)? is (?:it|today)\b|\b(?:today's|current) date\b"
    r"|^(?:date|today)\W*$|\bwhat(?:'s| is) (?:today|the (?:current )?(?:date|day)(?: today)?)\W*$"
)
_FEAST = re.compile(r"(?i)\b(?:christmas|xmas|new year|halloween|valentine)(?:'?s)?(?: day| (eve))?\b")
_FEASTS = {"c": date(4, 12, 25), "x": date(4, 12, 25), "n": date(4, 1, 1), "h": date(4, 10, 31), "v": date(4, 2, 14)}
_RELATIVE = {"day after tomorrow": 2, "day before yesterday": -2, "tomorrow": 1, "yesterday": -1, "today": 0}
_WEEKDAY = re.compile(rf"(?i)\b(next|last|this|coming) ({'|'.join(day_name)})\b")


def date_answer(sentence: str, now_seconds: float) -> str | None:
    """Return the answer to a question about time or dates at this Unix time, or None for another sentence."""
    now = datetime.fromtimestamp(now_seconds, UTC)
    if _TIME.search(sentence):
        return f"It is {now:%H:%M} UTC on {_long(now.date())}."
    try:
        answer = _day_answer(sentence, now.date())
    except (ValueError, OverflowError):
        return "There is no such date in my calendar, which knows the years 1 to 9999."
    return answer and answer[0].upper() + answer[1:]


def _day_answer(sentence: str, today: date) -> str | None:
    sentence = _FEAST.sub(_day_of, sentence)
    dates = _dates(sentence, today)
    first, second = [*dates, today, today][:2]
    if re.search(r"\bhow (?:many (?:days|weeks)|long)\b", sentence, re.I):
        days = abs((second - first).days)
        count = "is 1 day" if days == 1 else f"are {days} days"
        return f"There {count} between {_long(min(first, second))} and {_long(max(first, second))}." if dates else None
    offset = _OFFSET.search(sentence)
    if offset and re.search(r"\b(?:what|which|when|date|weekday)\b", sentence, re.I):
        number = int(offset[1]) if offset[1].isdigit() else _COUNTS[offset[1].lower()]
        moved = _moved(first, -number if offset[3] else number, offset[2].lower())
        return f"{offset[0]} {f'counted from {first}' if dates else 'from today'}: {_long(moved)}."
    is_today = _TODAY.search(sentence)
    if not is_today and not re.search(r"\b(?:what|which)\b.*\b(?:day|date|weekday)\b|\bwhen is\b", sentence, re.I):
        return None
    if dates:
        return f"{first} is a {_long(first)}."
    if weekday := _WEEKDAY.search(sentence):
        days, which = (list(day_name).index(weekday[2].capitalize()) - today.weekday()) % 7, weekday[1].lower()
        days = days - 7 if which == "last" else days if days or which == "this" else 7
        return f"{weekday[0]} is {_long(today + timedelta(days))}."
    for phrase, days in _RELATIVE.items():
        if phrase in sentence.lower():
            return f"{phrase} is {_long(today + timedelta(days))}."
    return f"Today is {_long(today)}." if is_today else None


def _day_of(feast: re.Match[str]) -> str:
    """Return the day and month of a feast, to which a year may be added: `Christmas 2026`."""
    day = _FEASTS[feast[0][0].lower()] - timedelta(1 if feast[1] else 0)
    return f"{day.day} {day:%B}"


def _dates(sentence: str, today: date) -> list[date]:
    found: list[date] = []
    is_ahead = re.search(r"\b(?:until|till|before|when is|to go)\b", sentence, re.I)
    for iso, day_before, month, day_after, year in _DATE.findall(sentence):
        if iso:
            found.append(date.fromisoformat(iso))
        elif day := day_before or day_after:
            one = datetime.strptime(f"{year or today.year} {month[:3]} {day}", "%Y %b %d").date()
            next_year = not year and ((is_ahead and one < today) or (found and one < found[-1]))
            found.append(_moved(one, 1, "year") if next_year else one)
    return found


def _moved(start: date, count: int, unit: str) -> date:
    if unit in ("day", "week"):
        return start + timedelta(count * (7 if unit == "week" else 1))
    year, month = divmod(start.year * 12 + start.month - 1 + count * (12 if unit == "year" else 1), 12)
    return date(year, month + 1, min(start.day, monthrange(year, month + 1)[1]))


def _long(day: date) -> str:
    return f"{day:%A}, {day.day} {day:%B} {day.year} ({day})"
