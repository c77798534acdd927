"""What only grows: findings, and the signatures of errors that are known. Kept in files of the run's shared folder.

The agent's state holds how long the files were when it was last committed. What is behind that was written by a
start that was ended before anybody heard of it: it is cut off, and found once more. So nothing is told twice, and
nothing is lost.
"""

import json
import os

SEGMENT_BYTES = 1024 * 1024
SEGMENTS_KEPT = 3
SIGNATURE_BYTES = 17
SIGNATURES_MAX = 50_000


class Ledger:
    """Findings as lines of JSON, in files of about a megabyte, of which the newest few are kept."""

    def __init__(self, folder, position=None):
        self.folder = folder
        self.position = dict(position or {"segment": 1, "bytes": 0})
        cut(self._path(self.position["segment"]), self.position["bytes"])
        # Segments behind the committed one belong to nobody.
        self._path(self.position["segment"] + 1).unlink(missing_ok=True)

    def append(self, records):
        lines = b"".join(json.dumps(record).encode() + b"\n" for record in records)
        if self.position["bytes"] > SEGMENT_BYTES:
            segment = self.position["segment"] + 1
            self.position = {"segment": segment, "bytes": 0}
            self._path(segment - SEGMENTS_KEPT).unlink(missing_ok=True)
        append(self._path(self.position["segment"]), lines)
        self.position = {**self.position, "bytes": self.position["bytes"] + len(lines)}

    def _path(self, segment):
        return self.folder / f"findings-{segment}.jsonl"


def records(folder, position):
    """The findings up to a position, oldest first, as many as are kept."""
    for segment in range(max(1, position["segment"] - SEGMENTS_KEPT + 2), position["segment"] + 1):
        path = folder / f"findings-{segment}.jsonl"
        if path.exists():
            data = path.read_bytes()
            yield from map(json.loads, (data[: position["bytes"]] if segment == position["segment"] else data).splitlines())


class Signatures:
    """Which errors are known; each has 17 bytes, so their number says how long the file is."""

    def __init__(self, folder, count):
        self.path = folder / "signatures"
        cut(self.path, count * SIGNATURE_BYTES)
        self.known = set(self.path.read_text().split())
        self.fresh = []

    def is_new(self, signature):
        if signature in self.known or len(self.known) >= SIGNATURES_MAX:
            return False
        self.known.add(signature)
        self.fresh.append(signature)
        return True

    def save(self):
        """@returns how many there are on disk"""
        if self.fresh:
            append(self.path, "".join(f"{one}\n" for one in self.fresh).encode())
            self.fresh = []
        return len(self.known)


def cut(path, length):
    with open(path, "ab") as file:
        if file.tell() > length:
            file.truncate(length)


def append(path, data):
    """On disk before it is told."""
    with open(path, "ab") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
