"""What is wrong with a table, in sentences: errors lose data, warnings may, notes are worth knowing."""

ODD_SHARE_MAX = 0.2


def unreadable(reason):
    return finding("error", "unreadable", f"The file {reason}.")


def finding(level, code, message, column=None, lines=()):
    return {"level": level, "code": code, "message": message, "column": column, "lines": list(lines)}


def of(looked, rows, table, columns, header):
    """All findings of a table, the worst first."""
    found = [*of_file(looked, rows), *of_rows(table), *of_header(header, table)]
    for column, summary in zip(table.columns, columns):
        found += of_column(column, summary, table.rows)
    order = ["error", "warning", "note"]
    return sorted(found, key=lambda one: order.index(one["level"]))


def of_file(looked, rows):
    if rows.stopped:
        yield finding("error", "not_read_to_the_end", f"{rows.stopped} What comes behind it is not in this report.")
    if rows.endless_quote:
        lines = [rows.endless_quote]
        yield finding("warning", "long_quote", "A quoted cell spans more than 1,000 lines; a quote may be missing.", lines=lines)
    if looked.guessed and looked.encoding == "cp1252":
        yield finding("warning", "encoding", "The file is not UTF-8; it was read as Windows-1252, which may be wrong.")
    elif "utf-16" in looked.encoding:
        yield finding("note", "encoding", "The file is UTF-16; many tools expect UTF-8.")
    elif looked.byte_order_mark:
        yield finding("note", "byte_order_mark", "The file begins with a byte order mark; some tools take it for a part of the first name.")
    if looked.nul_bytes:
        yield finding("error", "nul_bytes", f"{count(looked.nul_bytes, 'NUL byte')} left out; the file may be damaged.")


def of_rows(table):
    if table.rows == 0:
        yield finding("warning", "no_rows", "The table has no rows.")
    for width, rows in sorted(table.widths.items(), key=lambda item: -item[1])[:3]:
        is_short = width < table.width
        code, level = ("short_rows", "warning") if is_short else ("long_rows", "error")
        effect = "the missing cells count as empty" if is_short else "the further cells are not looked at"
        message = f"{plural(rows, 'row')} with {plural(width, 'cell')} in a table of {plural(table.width, 'column')}; {effect}."
        yield finding(level, code, message, lines=table.ragged.get(width, []))
    if table.repeated:
        message = f"{count(table.repeated, 'row')} repeated word for word."
        if table.rows - table.repeated > len(table.seen):
            message += f" Only the first {len(table.seen):,} different rows were compared."
        yield finding("warning", "repeated_rows", message, lines=table.repeated_lines)
    if table.empty_lines:
        yield finding("note", "empty_lines", f"{count(table.empty_lines, 'line')} without any value left out.")
    if table.width > len(table.columns):
        yield finding("warning", "many_columns", f"There are {table.width:,} columns; the first {len(table.columns):,} are looked at.")


def of_header(header, table):
    if not header and table.columns:
        yield finding("note", "no_header", "The first row does not look like names; columns are numbered.")
    plain = [" ".join(name.split()) for name in header]
    empty = [str(number) for number, name in enumerate(plain, 1) if not name]
    if empty:
        yield finding("warning", "unnamed_columns", f"{count(len(empty), 'column')} without a name: {listed(empty)}.")
    repeated = sorted({name for name in plain if name and plain.count(name) > 1}) if len(plain) <= 2_000 else []
    if repeated:
        yield finding("warning", "repeated_names", f"Several columns have the same name: {listed(repeated)}.")


def of_column(column, summary, rows):
    name = column.name
    if rows and column.present == 0:
        yield finding("warning", "empty_column", "The column is empty.", name)
        return
    if column.odd_count:
        lines = [one["line"] for one in column.odd]
        shown = listed([f"“{one['value']}”" for one in column.odd])
        level = "error" if column.odd_count <= ODD_SHARE_MAX * column.present else "warning"
        yield finding(level, "mixed_kinds", f"{count(column.odd_count, 'value')} no {column.kind}: {shown}.", name, lines)
    if column.ambiguous:
        yield finding("warning", "ambiguous_dates", "Days and months cannot be told apart; read as day first.", name)
    if column.formulas:
        message = f"{plural(column.formulas, 'value')} would become a formula in a spreadsheet (=, +, - or @ in front)."
        yield finding("warning", "formulas", message, name)
    if column.missing and column.missing > rows / 2:
        yield finding("note", "mostly_empty", f"{column.missing / rows:.0%} of the rows have no value.", name)
    if rows > 1 and column.present == rows and summary["different"] == 1 and not summary["more_different"]:
        yield finding("note", "constant", "Every row has the same value.", name)


def plural(number, noun):
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def count(number, noun):
    return plural(number, noun) + (" is" if number == 1 else " are")


def listed(names):
    return ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")
