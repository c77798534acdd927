"""Lists the documents and deals them out to the readers, in batches that are small enough to show progress.

Input: {} for every document, or {"documents": ["01-….md", …]} for some of them, by path or by name.
"""

import os

import library
import worker

DOCUMENTS_MAX = 5_000
# A reader's share in so many messages: enough to see it move, few enough that starting commands costs little.
BATCHES_PER_READER = 12
SHOWN_MAX = 20


def choose(found, wanted):
    by_name = {path.name: file for file, path in found.items()}
    missing = [name for name in wanted if name not in found and name not in by_name]
    if missing:
        worker.give_up(f"Not in the folder: {shown(missing)}. It holds: {shown(found)}.")
    # A document that is asked for twice is read once.
    chosen = list(dict.fromkeys(name if name in found else by_name[name] for name in wanted)) or list(found)
    if not chosen:
        worker.give_up(f"The folder holds no document. Documents are: {', '.join(sorted(library.EXTENSIONS))}.")
    if len(chosen) > DOCUMENTS_MAX:
        worker.give_up(f"{len(chosen):,} documents are more than {DOCUMENTS_MAX:,}; digest them folder by folder.")
    return chosen


def shown(names):
    names = list(names)
    more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
    return ", ".join(names[:SHOWN_MAX]) + more


def deal(sizes, readers):
    """The largest first, each to the reader with the fewest bytes so far: all end at about the same time."""
    hands, bytes_of = [[] for _ in range(readers)], [0] * readers
    for file in sorted(sizes, key=lambda file: (-sizes[file], file)):
        reader = bytes_of.index(min(bytes_of))
        hands[reader].append(file)
        bytes_of[reader] += sizes[file] + 1
    return hands


def batches(hand):
    length = -(-len(hand) // BATCHES_PER_READER)
    return [hand[start : start + length] for start in range(0, len(hand), length)] if hand else []


given = worker.body()
found = library.documents()
chosen = choose(found, given.get("documents") or [] if isinstance(given, dict) else [])
hands = deal({file: found[file].stat().st_size for file in chosen}, int(os.environ["READERS"]))
worker.report("progress", percent=100, label=f"{len(chosen)} documents to read")
worker.answer(
    emit_messages=[
        {"type": f"for-reader-{reader}", "body": {"batch": f"{reader}-{number}", "files": files}}
        for reader, hand in enumerate(hands, 1)
        for number, files in enumerate(batches(hand), 1)
    ]
)
