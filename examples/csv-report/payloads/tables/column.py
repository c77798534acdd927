"""What is known of one column while its cells pass by: bounded in memory however many cells there are."""

import math
import random
from array import array
from datetime import date

import values

EXAMPLES = 5
TEXT_CHARS = 80
BUCKETS_MAX = 4_000
LAST_DAY = date.max.toordinal()
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


class Column:
    """One column of a table that has `width` of them: together they remember a bounded number of values."""

    def __init__(self, name, kind, read, width):
        self.name = name
        self.kind = kind
        self.read = read
        self.room = max(20, min(1_000, 50_000 // width))
        self.present = 0
        self.missing = 0
        self.different = {}
        self.more_different = False
        self.odd = []
        self.odd_count = 0
        self.formulas = 0
        self.numbers = Numbers(max(200, min(10_000, 500_000 // width)), seed=name) if kind == "number" else None
        self.days = Days() if kind == "date" else None

    def add(self, cell, line):
        """@returns what the cell means: a number, a day, or None"""
        if cell == "" or cell.lower() in values.MISSING:
            self.missing += 1
            return None
        self.present += 1
        if cell in self.different:
            self.different[cell] += 1
        elif len(self.different) < self.room and len(cell) <= TEXT_CHARS:
            self.different[cell] = 1
        else:
            self.more_different = True
        meaning = self.read(cell) if self.read else None
        if meaning is None:
            self._note_odd(cell, line)
        elif self.numbers:
            self.numbers.add(meaning)
        return meaning

    def _note_odd(self, cell, line):
        if cell[0] in FORMULA_STARTS and len(cell) > 1:
            self.formulas += 1
        if self.read:
            self.odd_count += 1
            if len(self.odd) < EXAMPLES:
                self.odd.append({"line": line, "value": cell[:TEXT_CHARS]})

    def summary(self):
        top = sorted(self.different.items(), key=lambda item: (-item[1], item[0]))
        return {
            "name": self.name,
            "kind": self.kind,
            "present": self.present,
            "missing": self.missing,
            "different": len(self.different),
            "more_different": self.more_different,
            "top": [] if self.more_different and (not top or top[0][1] == 1) else top[:50],
            "odd_count": self.odd_count,
            "odd": self.odd,
            "formulas": self.formulas,
            "numbers": self.numbers.summary() if self.numbers and self.numbers.count else None,
            "days": self.days.summary() if self.days and self.days.buckets else None,
        }


class Numbers:
    """Exact extremes, mean and deviation; quartiles and shape from a sample that is the same in every run."""

    def __init__(self, room, seed):
        self.count = 0
        self.mean = 0.0
        self.squares = 0.0
        self.least = math.inf
        self.most = -math.inf
        self.whole = True
        self.room = room
        self.sample = array("d")
        self.chance = random.Random(seed)

    def add(self, number):
        self.count += 1
        distance = number - self.mean
        self.mean += distance / self.count
        self.squares += distance * (number - self.mean)
        self.least = min(self.least, number)
        self.most = max(self.most, number)
        self.whole = self.whole and number.is_integer()
        if len(self.sample) < self.room:
            self.sample.append(number)
        else:
            # Every number so far is in the sample with the same chance.
            place = int(self.chance.random() * self.count)
            if place < self.room:
                self.sample[place] = number

    def summary(self):
        ordered = sorted(self.sample)
        return {
            "least": self.least,
            "most": self.most,
            "mean": self.mean,
            "deviation": math.sqrt(max(0.0, self.squares) / self.count),
            "sum": self.mean * self.count,
            "whole": self.whole,
            "quartiles": [quantile(ordered, share) for share in (0.25, 0.5, 0.75)],
            "bins": bins(ordered, self.whole),
            "sampled": len(ordered) < self.count,
        }


def quantile(ordered, share):
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def bins(ordered, whole, wanted=16):
    """[from, to, count] with round borders, so that an axis can be read."""
    least, most = ordered[0], ordered[-1]
    if (most - least) / wanted == 0:
        return [[least, most, len(ordered)]]
    width = round_up((most - least) / wanted)
    if whole:
        width = max(1.0, width)
    first = math.floor(least / width)
    counts = [0] * (math.floor(most / width) - first + 1)
    for number in ordered:
        counts[min(len(counts) - 1, max(0, math.floor(number / width) - first))] += 1
    return [[(first + i) * width, (first + i + 1) * width, count] for i, count in enumerate(counts)]


def round_up(number):
    """The next of 1, 2, 5, 10, 20, 50 …"""
    power = 10.0 ** math.floor(math.log10(number))
    return next(step * power for step in (1, 2, 5, 10) if number <= step * power * 1.000001)


class Days:
    """Rows, and sums of a few numbers, by day; by month or year when there are too many days."""

    STEPS = ("day", "month", "year")

    def __init__(self):
        self.step = 0
        self.buckets = {}
        self.first = math.inf
        self.last = -math.inf

    def add(self, day, numbers=()):
        self.first = min(self.first, day)
        self.last = max(self.last, day)
        self._put(day, 1, numbers)
        if len(self.buckets) > BUCKETS_MAX and self.step + 1 < len(self.STEPS):
            self.step += 1
            coarser, self.buckets = self.buckets, {}
            for old, (rows, *sums) in coarser.items():
                self._put(old, rows, sums)

    def _put(self, day, rows, numbers):
        key = begin(day, self.STEPS[self.step])
        bucket = self.buckets.setdefault(key, [0] + [0.0] * len(numbers))
        bucket[0] += rows
        for i, number in enumerate(numbers, 1):
            bucket[i] += number or 0.0

    def summary(self):
        return {
            "first": date.fromordinal(self.first).isoformat(),
            "last": date.fromordinal(self.last).isoformat(),
            **series(self.buckets, self.STEPS[self.step], self.first, self.last),
        }


def begin(day, step):
    """The first day of the period that a day is in."""
    if step == "day":
        return day
    if step == "week":
        return day - (day - 1) % 7
    at = date.fromordinal(day)
    month = {"month": at.month, "quarter": 3 * ((at.month - 1) // 3) + 1}.get(step, 1)
    return date(at.year, month, 1).toordinal()


def series(buckets, finest, first, last, points_max=120):
    """A point for every period from the first to the last, empty ones too, as fine as so many points allow."""
    lengths = {"day": 1, "week": 7, "month": 30, "quarter": 91, "year": 365}
    steps = list(lengths)[list(lengths).index(finest) :]
    step = next((one for one in steps if (last - first) / lengths[one] < points_max), "year")
    width = len(next(iter(buckets.values())))
    points = {}
    day = begin(first, step)
    while day <= last and len(points) < 10 * points_max:
        points[day] = [0] + [0.0] * (width - 1)
        following = day + {"day": 1, "week": 7, "month": 32, "quarter": 93, "year": 366}[step]
        day = begin(following, step) if following <= LAST_DAY else math.inf
    for key, sums in buckets.items():
        point = points.get(begin(key, step))
        if point:
            for i, number in enumerate(sums):
                point[i] += number
    return {"step": step, "points": [[date.fromordinal(day).isoformat(), *sums] for day, sums in points.items()]}
