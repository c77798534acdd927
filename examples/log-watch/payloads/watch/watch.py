"""Reads new lines of the log files as they come, and raises findings: events at once, and a message to `report`,
which writes the outputs anew, every now and then.

Every answer is one line that holds the findings and, as next_state, how far the files were read to find them. The
runtime commits such a line as a whole. So after a crash the next start reads on exactly where the last finding that
anybody has seen was found.
"""

import os
import select
import signal
import sys
import time
from datetime import datetime, timezone

import worker
from ledger import Ledger, Signatures
from rules import Rules, signature
from tail import Tail

STDIN = 0
CHECKPOINT_SECONDS = 5
LOOK_SECONDS = 1
PROGRESS_SECONDS = 30
# The outputs are written anew less and less often, so that a watch of months leaves no mountain of files.
REFRESH_SHARE = 1 / 200
REFRESH_SECONDS_MAX = 900
LEARN_BYTES = 1024 * 1024

signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))


class Watch:
    def __init__(self, now):
        logs, settings, before = worker.config("logs"), worker.config("watch"), worker.state()
        folder = str(logs.get("folder") or "").strip()
        if not os.path.isdir(folder):
            worker.give_up(f"logs.folder is {folder!r}, and there is no such folder. Give one as an absolute path.")
        self.poll_seconds = settings.get("poll_ms", 500) / 1000
        self.refresh_seconds = settings.get("refresh_seconds", 5)
        self.ledger = Ledger(worker.shared(), before.get("ledger"))
        self.signatures = Signatures(worker.shared(), before.get("signatures", 0))
        self.rules = Rules(settings, before.get("rules", {}), self.signatures.is_new)
        self.tail = Tail(folder, logs.get("files") or ["*.log"], before.get("files"), logs.get("start_at") != "beginning")
        self.totals = before.get("totals", {"lines": 0, "errors": 0, "findings": 0})
        self.started_at = before.get("started_at", now)
        self.refreshed_at = before.get("refreshed_at")
        self.is_stale = before.get("is_stale", True)
        self.is_empty = before.get("is_empty", True)
        self.saved_at = self.looked_at = self.told_at = now
        self.saved_lines = self.totals["lines"]
        if "files" not in before:
            self._learn()

    def _learn(self):
        """Errors that are already in the logs at the first start are not reported later."""
        for followed in self.tail.files.values():
            begin = max(0, followed.offset - LEARN_BYTES)
            for line in os.pread(followed.fd, followed.offset - begin, begin).splitlines():
                text = line.decode("utf-8", errors="replace")[:2000]
                if self.rules.error.search(text):
                    self.signatures.is_new(signature(text))

    def step(self, now):
        """Reads what is new. @returns whether there was anything"""
        if now - self.looked_at >= LOOK_SECONDS:
            self.looked_at = now
            self.tail.look()
        has_read = False
        for file, batch in self.tail.new_lines():
            has_read = True
            self.totals["lines"] += len(batch)
            self.totals["errors"] += sum(self.rules.line(file, text, now) for text in batch)
        self.rules.pause(now)
        found = [self._numbered(finding) for finding in self.rules.take()]
        has_moved = self.totals["lines"] != self.saved_lines and now - self.saved_at >= CHECKPOINT_SECONDS
        if found or has_moved or self._should_refresh(now):
            self.save(now, found)
        self._tell(now)
        return has_read

    def save(self, now, found):
        """One line: findings, the state that they were found in, and a message to `report` when its time has come."""
        if found:
            self.ledger.append(found)
            self.is_stale = True
        messages = []
        if self._should_refresh(now):
            self.is_stale, self.is_empty, self.refreshed_at = False, self.totals["findings"] == 0, now
            body = {"ledger": self.ledger.position, "totals": self.totals, "at": iso(now), "since": iso(self.started_at)}
            messages.append({"type": "refresh", "body": {**body, "files": sorted(f.name for f in self.tail.files.values())}})
        self.saved_at, self.saved_lines = now, self.totals["lines"]
        state = {
            "files": self.tail.positions(),
            "ledger": self.ledger.position,
            "signatures": self.signatures.save(),
            "rules": self.rules.state(),
            "totals": self.totals,
            "started_at": self.started_at,
            "refreshed_at": self.refreshed_at,
            "is_stale": self.is_stale,
            "is_empty": self.is_empty,
        }
        events = [{"type": "finding", "payload": finding} for finding in found]
        worker.answer(events=events, emit_messages=messages, next_state=state)

    def _numbered(self, finding):
        self.totals["findings"] += 1
        return {"number": self.totals["findings"], **finding, "at": iso(finding["at"])}

    def _should_refresh(self, now):
        """After the spacing; at once for the first finding, because outputs that say "nothing yet" are wrong now."""
        spacing = max(self.refresh_seconds, min(REFRESH_SECONDS_MAX, (now - self.started_at) * REFRESH_SHARE))
        is_first = self.is_empty and self.totals["findings"] > 0
        return self.is_stale and (self.refreshed_at is None or is_first or now - self.refreshed_at >= spacing)

    def _tell(self, now):
        while self.tail.complaints:
            worker.report("log", level="warn", message=self.tail.complaints.pop())
        if now - self.told_at >= PROGRESS_SECONDS:
            self.told_at = now
            files, totals = len(self.tail.files), self.totals
            worker.report("progress", label=f"{files} files, {totals['lines']:,} lines, {totals['findings']:,} findings")


def iso(seconds):
    at = datetime.fromtimestamp(seconds, timezone.utc)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def stdin_has_ended(wait_seconds):
    """Waits for the next look; what arrives on stdin is read and meant for nobody."""
    readable, _, _ = select.select([STDIN], [], [], wait_seconds)
    return bool(readable) and os.read(STDIN, 65536) == b""


watch = Watch(time.time())
watch.save(time.time(), [])
while not stdin_has_ended(0 if watch.step(time.time()) else watch.poll_seconds):
    pass
