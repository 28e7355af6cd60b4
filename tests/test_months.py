"""Calendar months in UTC."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from svc.months import end_of, month_of


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)))
def test_month_ends_where_the_next_one_begins(at: datetime) -> None:
    month = month_of(at.timestamp())
    assert month == f"{at:%Y-%m}"
    end = datetime.fromisoformat(end_of(month))
    assert at < end <= at + timedelta(days=31) and (end.day, end.hour, end.minute) == (1, 0, 0)
    assert month_of(end.timestamp() - 0.001) == month < month_of(end.timestamp())
