"""Finds the tables, puts them where all workers of the run can read them, and deals them out to the readers.

The folder is moved, not copied, from this agent's workspace into the folder that the run shares: a table of many
gigabytes is not copied once more for each reader. Moving is one step of the file system, so a plan that is made
again after a crash finds the folder in one of the two places.
"""

import os
from pathlib import Path

import worker

EXTENSIONS = {".csv", ".tsv", ".tab", ".txt"}
SHIPPED = "data"
TABLES_MAX = 500


def hand_over(folder):
    """Where the tables are from now on. A folder outside the workspace is the user's own, and stays where it is."""
    if folder.is_absolute():
        return folder
    target = worker.shared("data")
    if not target.exists():
        os.rename(folder, target)
    return target


def tables(root):
    """The tables below a folder with their sizes, by their path relative to it."""
    found = {}
    for place, _, names in os.walk(root):
        for name in names:
            path = Path(place, name)
            if path.suffix.lower() in EXTENSIONS and path.is_file():
                found[path.relative_to(root).as_posix()] = path.stat().st_size
    return found


def deal(sizes, readers):
    """The largest first, each to the reader with the fewest bytes so far: all end at about the same time."""
    bytes_of = [0] * readers
    for file in sorted(sizes, key=lambda file: (-sizes[file], file)):
        reader = bytes_of.index(min(bytes_of))
        bytes_of[reader] += sizes[file] + 1
        yield reader + 1, file


given = str(worker.config("tables").get("folder") or "").strip()
root = hand_over(Path(given or SHIPPED))
sizes = tables(root)
if not sizes:
    worker.give_up(f"The folder holds no table. Tables are: {', '.join(sorted(EXTENSIONS))}.")
if len(sizes) > TABLES_MAX:
    worker.give_up(f"{len(sizes):,} tables are more than {TABLES_MAX}; report on them folder by folder.")

# A number for each, in the order of their names: it names a table's file of results whatever the table is called.
numbers = {file: number for number, file in enumerate(sorted(sizes), 1)}
worker.report("progress", percent=100, label=f"{len(sizes)} {'table' if len(sizes) == 1 else 'tables'}, {sum(sizes.values()):,} bytes")
worker.answer(
    emit_messages=[
        {"type": f"for-reader-{reader}", "body": {"table": numbers[file], "root": str(root), "file": file}}
        for reader, file in deal(sizes, int(os.environ["READERS"]))
    ]
)
