"""Reads one table row by row, and leaves a profile of it: its columns, what is wrong with them, charts' numbers.

A profile is a few hundred kilobytes at most, whatever the size of the table. It goes into a file in the folder
that the run shares; a table that is read again after a crash writes the same file again.
"""

import time
from collections import Counter
from hashlib import blake2b
from itertools import chain
from pathlib import Path

import findings
import source
import values
import worker
from column import Column

COLUMNS_MAX = 1_000
SAMPLE_ROWS = 2_000
# Rows that are remembered to notice repetitions.
REMEMBERED_ROWS = 500_000
MEASURES_MAX = 3
LINES_SHOWN = 5
WIDTHS_MAX = 100
VALUES_TRIED = 500
ROWS_PER_LOOK = 5_000


class Table:
    """What is counted while rows pass by."""

    def __init__(self, columns):
        self.columns = columns
        self.rows = 0
        self.empty_lines = 0
        self.widths = Counter()
        self.ragged = {}
        self.seen = set()
        self.repeated = 0
        self.repeated_lines = []
        dates = [column for column in columns if column.days]
        # Sums of the first numbers by the first date are what a table with both is mostly about.
        self.when = columns.index(dates[0]) if dates else None
        self.measures = [i for i, column in enumerate(columns) if column.numbers][:MEASURES_MAX] if dates else []

    def add(self, row, line):
        if not any(row):
            self.empty_lines += 1
            return
        self.rows += 1
        width = len(row)
        if width != len(self.columns):
            self.widths[width] += 1
            lines = self.ragged.setdefault(width, []) if len(self.ragged) < WIDTHS_MAX else []
            if len(lines) < LINES_SHOWN:
                lines.append(line)
        meanings = [column.add(cell.strip(), line) for column, cell in zip(self.columns, row)]
        for column in self.columns[width:]:
            column.missing += 1
        self._dates(meanings)
        self._remember(row, line)

    def _dates(self, meanings):
        for i, meaning in enumerate(meanings):
            days = self.columns[i].days
            if days and meaning is not None:
                is_main = i == self.when
                days.add(meaning, [meanings[m] if m < len(meanings) else None for m in self.measures] if is_main else ())

    def _remember(self, row, line):
        digest = blake2b("\x1f".join(row).encode("utf-8", "replace"), digest_size=8).digest()
        if digest in self.seen:
            self.repeated += 1
            if len(self.repeated_lines) < LINES_SHOWN:
                self.repeated_lines.append(line)
        elif len(self.seen) < REMEMBERED_ROWS:
            self.seen.add(digest)


def is_header(row, setting):
    """Names are mostly no numbers, no dates, and there is one for most columns."""
    if setting != "auto":
        return setting == "first_row"
    cells = [cell.strip() for cell in row]
    named = [cell for cell in cells if cell]
    like_data = [c for c in named if values.number_with_point(c) is not None or values.date_year_first(c) is not None]
    return len(named) * 2 >= len(cells) and len(like_data) * 2 <= len(named)


def columns_of(names, sample, delimiter):
    made = []
    for index, name in enumerate(names):
        cells = (row[index].strip() for row in sample if index < len(row))
        given = [cell for cell in cells if cell.lower() not in values.MISSING]
        kind, read, ambiguous = values.way_of(given[:VALUES_TRIED], delimiter)
        column = Column(name, kind, read, len(names))
        column.ambiguous = ambiguous
        made.append(column)
    return made


def unique(names):
    """Column names that tell columns apart: empty ones are numbered, repeated ones too."""
    taken, result = Counter(), []
    for number, name in enumerate(names, 1):
        plain = " ".join(name.split())[:120] or f"column {number}"
        taken[plain] += 1
        result.append(plain if taken[plain] == 1 else f"{plain} ({taken[plain]})")
    return result


def profile(path, file):
    settings = worker.config("report")
    looked = source.look(path, settings.get("delimiter", "auto"))
    rows = source.Rows(looked)
    passing = iter(rows)
    sample = []
    for row in passing:
        sample.append((row, rows.line))
        if len(sample) == SAMPLE_ROWS:
            break
    while sample and not any(sample[0][0]):
        sample.pop(0)
    header = bool(sample) and is_header(sample[0][0], settings.get("header", "auto"))
    given = sample.pop(0)[0] if header else [""] * max((len(row) for row, _ in sample), default=0)
    names = unique(given)[:COLUMNS_MAX]
    table = Table(columns_of(names, [row for row, _ in sample], looked.delimiter))
    table.width = len(given)
    read_all(table, rows, chain(sample, ((row, rows.line) for row in passing)), looked.size, file)
    columns = [column.summary() for column in table.columns]
    return {
        "file": file,
        "size": looked.size,
        "sha256": looked.sha256,
        "encoding": looked.encoding,
        "delimiter": source.DELIMITERS.get(looked.delimiter, looked.delimiter),
        "header": header,
        "rows": table.rows,
        "columns": columns,
        "when": None if table.when is None else table.columns[table.when].name,
        "measures": [table.columns[i].name for i in table.measures],
        "findings": findings.of(looked, rows, table, columns, given if header else []),
    }


def read_all(table, rows, numbered, size, file):
    told = time.monotonic()
    for row, line in numbered:
        # What is beyond the last column that is looked at still counts as the row's width.
        table.add(row if len(row) <= COLUMNS_MAX or table.width <= COLUMNS_MAX else row[:COLUMNS_MAX], line)
        if table.rows % ROWS_PER_LOOK == 0 and time.monotonic() - told > 1:
            told = time.monotonic()
            percent = min(99, round(100 * rows.bytes_read() / max(1, size)))
            worker.report("progress", percent=percent, label=f"{file}: {table.rows:,} rows")


message = worker.body()
worker.report("progress", percent=0, label=f"reading {message['file']}")
try:
    result = profile(Path(message["root"], message["file"]), message["file"])
except source.Unreadable as reason:
    result = {"file": message["file"], "rows": 0, "columns": [], "findings": [findings.unreadable(str(reason))]}
except OSError as error:
    worker.give_up(f"{message['file']} cannot be read: {error.strerror}.")
worker.save(worker.shared("profiles", f"{message['table']}.json"), result)
worker.report("metric", name="rows_read", value=result["rows"], unit="rows")
for finding in result["findings"]:
    if finding["level"] == "error":
        worker.report("log", level="warn", message=f"{result['file']}: {finding['message']}")
worker.report("progress", percent=100, label=f"{result['file']}: {result['rows']:,} rows")
worker.answer(emit_messages=[{"type": "profile", "body": {"table": message["table"], "rows": result["rows"]}}])
