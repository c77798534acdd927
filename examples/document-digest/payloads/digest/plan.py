"""Lists the documents and deals them out: one message per document, to the reader with the least to read.

Input: {} for every document, or {"documents": ["01-….md", …]} for some of them.
"""

import os
from pathlib import Path

import worker

FOLDER = Path("documents")
EXTENSIONS = {".md", ".txt"}


def choose(wanted):
    found = {path.name: path for path in FOLDER.rglob("*") if path.suffix.lower() in EXTENSIONS and path.is_file()}
    missing = [name for name in wanted if name not in found]
    if missing:
        worker.give_up(f"Not in payloads/documents: {', '.join(missing)}. It holds: {', '.join(sorted(found))}.")
    chosen = [found[name] for name in wanted] if wanted else list(found.values())
    if not chosen:
        worker.give_up("payloads/documents holds no .md or .txt file; put the documents to digest there.")
    return chosen


def deal(documents, readers):
    """The largest first, each to the reader with the fewest bytes so far: all end at about the same time."""
    bytes_of = [0] * readers
    for path in sorted(documents, key=lambda path: (-path.stat().st_size, path.name)):
        reader = bytes_of.index(min(bytes_of))
        bytes_of[reader] += path.stat().st_size
        yield reader + 1, path


given = worker.body()
documents = choose(given.get("documents", []) if isinstance(given, dict) else [])
worker.report("progress", percent=100, label=f"{len(documents)} documents to read")
worker.answer(
    emit_messages=[
        {"type": f"for-reader-{reader}", "body": {"file": path.relative_to(FOLDER).as_posix()}}
        for reader, path in deal(documents, int(os.environ["READERS"]))
    ]
)
