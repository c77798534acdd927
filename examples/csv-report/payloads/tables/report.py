"""Writes report.html and findings.json from the tables' profiles, and ends the run.

Tables are in the order of their names, and are written one by one: neither file is ever in memory as a whole.
Whatever is in a cell is shown as text: nothing of it can act in the page.
"""

import json
import os
import unicodedata
from html import escape
from pathlib import Path
from string import Template

import charts
import worker

CHARTS_PER_TABLE = 24
CHARTS_MAX = 400
COLUMNS_SHOWN_MAX = 5_000
FINDINGS_SHOWN = 100
BARS = 12
# What a page and a file of findings say of a column's numbers and days.
FACTS = ("least", "most", "mean", "deviation", "sum", "quartiles", "first", "last")


def shown(text):
    """Text as it can be shown: control characters and those that turn the direction of writing are replaced."""
    return "".join("�" if unicodedata.category(char) in ("Cc", "Cf", "Cs") else char for char in text)


def html(text):
    return escape(shown(text))


class Page:
    """Writes the page table by table, with one number for each chart and one budget for all tables."""

    def __init__(self, file):
        self.file = file
        self.charts = 0
        self.columns_left = COLUMNS_SHOWN_MAX

    def table(self, number, one):
        meta = [f"{one['rows']:,} rows", f"{len(one['columns']):,} columns"]
        if "encoding" in one:
            meta += [f"{one['size']:,} bytes", one["encoding"].upper(), f"{one['delimiter']}-separated"]
        self.file.write(
            f'<section id="t{number}"><h2>{html(one["file"])}</h2><p class="meta">{html(" · ".join(meta))}</p>'
            + finding_list(one["findings"])
        )
        figures = list(self.figures(one))
        if figures:
            self.file.write(f'<div class="figures">{"".join(figures)}</div>')
        if one["columns"]:
            self.file.write(self.column_table(one))
        self.file.write("</section>\n")

    def figures(self, one):
        for title, kind, data in list(drawings(one))[:CHARTS_PER_TABLE]:
            if self.charts >= CHARTS_MAX:
                return
            self.charts += 1
            # Labels come from cells; titles from column names.
            drawn = {"bars": charts.bars, "histogram": charts.histogram, "line": charts.line}[kind](
                self.charts, shown(title), data
            )
            yield f"<figure><figcaption>{html(title)}</figcaption>{drawn}{numbers_table(kind, data)}</figure>"

    def column_table(self, one):
        columns = one["columns"][: self.columns_left]
        self.columns_left -= len(columns)
        rows = "".join(column_row(column, one["rows"]) for column in columns)
        more = len(one["columns"]) - len(columns)
        note = f"<p class=meta>and {more:,} more columns, which are in findings.json</p>" if more else ""
        return (
            f'<h3>Columns</h3><div class="scroll" tabindex="0" role="region" aria-label="Columns of {html(one["file"])}"><table>'
            '<thead><tr><th>Column</th><th>Kind</th><th class="n">Filled</th>'
            '<th class="n">Different</th><th>From</th><th>To</th><th class="n">Mean</th><th class="n">Median</th>'
            f"</tr></thead><tbody>{rows}</tbody></table></div>{note}"
        )


def column_row(column, rows):
    numbers, days = column["numbers"], column["days"]
    least, most, mean, median = "", "", "", ""
    if numbers:
        least, most, mean = (charts.amount(numbers[name]) for name in ("least", "most", "mean"))
        median = charts.amount(numbers["quartiles"][1])
    elif days:
        least, most = days["first"], days["last"]
    different = f"{column['different']:,}{'+' if column['more_different'] else ''}"
    filled = f"{column['present'] / rows:.0%}" if rows else ""
    kind = column["kind"] if column["present"] else "empty"
    return (
        f'<tr><th scope="row">{html(column["name"])}</th><td>{kind}</td><td class="n">{filled}</td><td class="n">{different}</td>'
        f'<td>{least}</td><td>{most}</td><td class="n">{mean}</td><td class="n">{median}</td></tr>'
    )


def finding_list(findings):
    if not findings:
        return '<p class="good">Nothing is wrong with it.</p>'
    items = "".join(
        f'<li class="{one["level"]}"><b>{one["level"]}</b> {column_of(one)}{html(one["message"])}{lines_of(one)}</li>'
        for one in findings[:FINDINGS_SHOWN]
    )
    more = len(findings) - FINDINGS_SHOWN
    return f'<ul class="findings">{items}</ul>' + (f"<p class=meta>and {more:,} more, in findings.json</p>" if more > 0 else "")


def column_of(one):
    return f'<i>{html(one["column"])}</i>: ' if one["column"] else ""


def lines_of(one):
    lines = ", ".join(f"{line:,}" for line in one["lines"])
    return f' <span class="lines">line {lines}</span>' if lines else ""


def drawings(one):
    """(title, kind of chart, data) for what is worth a chart."""
    for column in one["columns"]:
        if column["days"] and len(column["days"]["points"]) > 1:
            step, points = column["days"]["step"], column["days"]["points"]
            yield f"Rows per {step} of {column['name']}", "line", [(day, rows) for day, rows, *_ in points]
            if column["name"] == one["when"]:
                yield from by_time(one, step, points)
    for column in one["columns"]:
        numbers, top = column["numbers"], column["top"]
        few = top and not column["more_different"] and column["different"] <= BARS
        if numbers and not few:
            title = f"{column['name']}, how often" + (" (from a sample)" if numbers["sampled"] else "")
            yield title, "histogram", numbers["bins"]
        elif column["kind"] != "date" and top and 1 < column["different"] <= column["present"] / 2:
            yield f"{column['name']}, how often", "bars", most_common(column)


def by_time(one, step, points):
    """What can be added up is summed. What goes below zero (temperatures, balances) is rather averaged."""
    numbers = {column["name"]: column["numbers"] for column in one["columns"]}
    for place, measure in enumerate(one["measures"], 2):
        if not numbers[measure]:
            continue
        if numbers[measure]["least"] >= 0:
            yield f"{measure} per {step}, summed", "line", [(point[0], point[place]) for point in points]
        else:
            filled = [(point[0], point[place] / point[1]) for point in points if point[1]]
            yield f"{measure} per {step}, on average", "line", filled


def most_common(column):
    top = [(shown(value), count) for value, count in column["top"]]
    if len(top) > BARS:
        top = top[: BARS - 1]
    rest = column["present"] - sum(count for _, count in top)
    return top + [("all others", rest)] if rest else top


def numbers_table(kind, data):
    """The same as a table, for those who do not see the chart, and for copying."""
    if kind == "histogram":
        rows = [(f"{charts.amount(begin)} to {charts.amount(end)}", count) for begin, end, count in data]
    else:
        rows = data
    cells = "".join(f'<tr><th scope="row">{escape(label)}</th><td class="n">{charts.amount(value)}</td></tr>' for label, value in rows)
    return f'<details><summary>Numbers</summary><table><tbody>{cells}</tbody></table></details>'


def overview(number, one):
    counts = {level: sum(finding["level"] == level for finding in one["findings"]) for level in ("error", "warning", "note")}
    cells = "".join(f'<td class="n {level if count else ""}">{count}</td>' for level, count in counts.items())
    return (
        f'<tr><th scope="row"><a href="#t{number}">{html(one["file"])}</a></th><td class="n">{one["rows"]:,}</td>'
        f'<td class="n">{len(one["columns"]):,}</td>{cells}</tr>'
    ), counts


def facts(one):
    """A table for findings.json: everything but the numbers of the charts."""
    columns = []
    for column in one["columns"]:
        known = {**(column["numbers"] or {}), **(column["days"] or {})}
        plain = {name: column[name] for name in ("name", "kind", "present", "missing", "different", "more_different")}
        columns.append({**plain, **{name: known[name] for name in FACTS if name in known}})
    plain = {name: value for name, value in one.items() if name not in ("columns", "when", "measures", "findings")}
    return {**plain, "columns": columns, "findings": one["findings"]}


def profiles(numbers):
    for number in numbers:
        with open(worker.shared("profiles", f"{number}.json"), encoding="utf-8") as file:
            yield number, json.load(file)


def write_page(path, title, numbers, totals, rows):
    template = Template((Path(__file__).parent / "page.html").read_text(encoding="utf-8"))
    sums = (
        f"{totals['tables']:,} tables, {totals['rows']:,} rows, {totals['errors']:,} errors, {totals['warnings']:,} warnings"
    )
    top, bottom = template.substitute(title=html(title), totals=sums, rows="\n".join(rows)).split("<!-- tables -->")
    with open(path, "w", encoding="utf-8") as file:
        file.write(top)
        page = Page(file)
        for number, one in profiles(numbers):
            page.table(number, one)
        file.write(bottom)


numbers = sorted(one["table"] for one in worker.body()["messages"])
out = Path(os.environ["SVC_OUTPUT_DIR"])
totals = {"tables": len(numbers), "rows": 0, "errors": 0, "warnings": 0, "notes": 0}
rows = []
with open(out / "findings.json", "w", encoding="utf-8") as file:
    file.write('{"tables": [')
    for place, (number, one) in enumerate(profiles(numbers)):
        row, counts = overview(number, one)
        rows.append(row)
        totals["rows"] += one["rows"]
        for level, count in counts.items():
            totals[f"{level}s"] += count
        file.write(("," if place else "") + "\n" + json.dumps(facts(one), allow_nan=False))
    file.write(f'\n],\n"totals": {json.dumps(totals)}}}\n')
worker.report("progress", percent=50, label="findings.json is written")

title = worker.config("report").get("title") or "CSV report"
write_page(out / "report.html", title, numbers, totals, rows)
worker.report("progress", percent=100, label="report.html is written")
worker.answer(complete_run={"report": ["report.html", "findings.json"], **totals})
