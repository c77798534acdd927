"""What a cell may mean: nothing, a number, a date, or text."""

import re
from datetime import date

MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "-", "--", "?"})

PLAIN = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?$", re.ASCII)
GROUPED = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?$", re.ASCII)
COMMA = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+)(?:,\d+)?$", re.ASCII)
# 007 and 01234 are names that are written in digits.
CODE = re.compile(r"[+-]?0\d", re.ASCII)
UNITS = "$€£¥% \u00a0\u202f"
DIGITS_MAX = 40
# Beyond this, squares and sums would leave what a computer counts with.
LARGEST = 1e100

TIME = r"(?:[T ]+\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)? ?(?:Z|UTC|[+-]\d{2}:?\d{2}|[AaPp][Mm])?)?$"
YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})" + TIME, re.ASCII)
YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})" + TIME, re.ASCII)


def number_with_point(text):
    """1234.5, 1,234.5, 1e3, $12, 5 %; None for anything else."""
    text = text.strip(UNITS)
    if len(text) > DIGITS_MAX or CODE.match(text):
        return None
    if PLAIN.match(text):
        number = float(text)
        return number if abs(number) <= LARGEST else None
    return float(text.replace(",", "")) if GROUPED.match(text) else None


def number_with_comma(text):
    """1234,5, 1.234,5, 12 €; None for anything else."""
    text = text.strip(UNITS)
    if len(text) > DIGITS_MAX or CODE.match(text) or not COMMA.match(text):
        return None
    return float(text.replace(".", "").replace(",", "."))


def date_year_first(text):
    found = YEAR_FIRST.match(text)
    return day(found[1], found[3], found[4]) if found else None


def date_day_first(text):
    found = YEAR_LAST.match(text)
    return day(found[4], found[3], found[1]) if found else None


def date_month_first(text):
    found = YEAR_LAST.match(text)
    return day(found[4], found[1], found[3]) if found else None


def day(year, month, day_of_month):
    """Days since the year 1; None when there is no such day."""
    try:
        return date(int(year), int(month), int(day_of_month)).toordinal()
    except ValueError:
        return None


# By kind, then the ways to write it. The order breaks ties.
WAYS = {
    "date": (date_year_first, date_day_first, date_month_first),
    "number": (number_with_point, number_with_comma),
}


def way_of(values, delimiter):
    """How the values of a column are to be read.

    @param values some of them, none missing
    @returns (kind, function or None, whether another way would have fitted as well and meant something else)
    """
    if not values:
        return "text", None, False
    for kind, ways in WAYS.items():
        # Where commas separate the cells, a comma in a number separates thousands.
        ordered = ways[::-1] if kind == "number" and delimiter == ";" else ways
        fits = [sum(way(value) is not None for value in values) for way in ordered]
        best = max(fits)
        if best >= 0.8 * len(values):
            way = ordered[fits.index(best)]
            rivals = [other for other, fit in zip(ordered, fits) if fit == best and other is not way]
            ambiguous = kind == "date" and any(
                other(value) != way(value) for other in rivals for value in values[:200]
            )
            return kind, way, ambiguous
    return "text", None, False
