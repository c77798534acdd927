"""What is worth a finding. Knows lines and the time, nothing of files on disk; `state()` is what it remembers."""

import hashlib
import re

LINE_CHARS = 2_000
SHOWN_CHARS = 500
FINDINGS_PER_MINUTE = 60
# A pattern that goes on matching is raised once a minute, with a count.
PATTERN_REST_SECONDS = 60

# What differs between two cases of one error: ids, numbers, times, quoted values.
VARYING = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|0x[0-9a-fA-F]+|\b[0-9a-fA-F]{12,64}\b|\"[^\"]{0,200}\"|'[^']{0,200}'|\d+")


class Rules:
    def __init__(self, settings, state, is_new):
        """@param is_new whether an error of this signature has not been seen before; remembers it"""
        burst = settings.get("burst") or {}
        self.error = re.compile(settings.get("error_pattern") or r"\bERROR\b")
        self.patterns = [(one["name"], re.compile(one["pattern"])) for one in settings.get("patterns") or []]
        self.burst_errors = burst.get("errors", 20)
        self.burst_seconds = burst.get("seconds", 60)
        self.silence_seconds = settings.get("silence_seconds", 0)
        self.is_new = is_new
        """Errors by second, oldest first, as far back as a burst may be long."""
        self.recent = state.get("recent", [])
        self.in_burst = state.get("in_burst", False)
        self.last_line_at = state.get("last_line_at")
        self.silent = state.get("silent", False)
        """By name of a pattern: when it was last raised, and how often it matched since."""
        self.matched = state.get("matched", {})
        self.minute = state.get("minute", [0, 0])
        self.found = []

    def state(self):
        names = ("recent", "in_burst", "last_line_at", "silent", "matched", "minute")
        return {name: getattr(self, name) for name in names}

    def line(self, file, text, now):
        """@returns whether the line is an error"""
        text = text[:LINE_CHARS]
        if self.silent:
            self.silent = False
            self._raise(now, "heard_again", "note", file, "There are new lines again.", text)
        self.last_line_at = now
        for name, pattern in self.patterns:
            if pattern.search(text):
                self._match(now, name, file, text)
        if not self.error.search(text):
            return False
        self._count_error(now)
        if self.is_new(signature(text)):
            self._raise(now, "new_error", "error", file, "An error that was not seen before.", text)
        self._look_for_burst(now, file, text)
        return True

    def pause(self, now):
        """To be called every now and then: what does not happen is found here."""
        if self.last_line_at is None:
            self.last_line_at = now
        quiet = now - self.last_line_at
        if self.silence_seconds and quiet >= self.silence_seconds and not self.silent:
            self.silent = True
            self._raise(now, "silence", "warning", None, f"No new line in any file for {round(quiet)} seconds.", None)
        self._forget(now)
        if self.in_burst and self._errors() * 2 < self.burst_errors:
            self.in_burst = False

    def take(self):
        found, self.found = self.found, []
        return found

    def _count_error(self, now):
        second = int(now)
        if self.recent and self.recent[-1][0] == second:
            self.recent[-1][1] += 1
        else:
            self.recent.append([second, 1])
            self._forget(now)

    def _forget(self, now):
        while self.recent and self.recent[0][0] <= now - self.burst_seconds:
            self.recent.pop(0)

    def _errors(self):
        return sum(count for _, count in self.recent)

    def _look_for_burst(self, now, file, text):
        errors = self._errors()
        if self.in_burst or errors < self.burst_errors:
            return
        self.in_burst = True
        message = f"{errors} errors within {self.burst_seconds} seconds."
        self._raise(now, "error_burst", "error", file, message, text)

    def _match(self, now, name, file, text):
        last, count = self.matched.get(name, [None, 0])
        if last is not None and now - last < PATTERN_REST_SECONDS:
            self.matched[name] = [last, count + 1]
            return
        self.matched[name] = [now, 0]
        more = f" It has matched {count} more times since." if count else ""
        self._raise(now, "pattern", "warning", file, f"A line matches “{name}”.{more}", text)

    def _raise(self, now, kind, level, file, message, line):
        """At most so many a minute: what breaks everything at once is not told line by line."""
        minute = int(now // 60)
        if self.minute[0] != minute:
            held_back, self.minute = self.minute[1] - FINDINGS_PER_MINUTE, [minute, 0]
            if held_back > 0:
                self._keep(now, "more", "warning", None, f"{held_back} more findings in a minute were not raised one by one.", None)
        self.minute[1] += 1
        if self.minute[1] <= FINDINGS_PER_MINUTE:
            self._keep(now, kind, level, file, message, line)

    def _keep(self, now, kind, level, file, message, line):
        shown = None if line is None else line[:SHOWN_CHARS]
        self.found.append({"at": now, "kind": kind, "level": level, "file": file, "message": message, "line": shown})


def signature(text):
    """The same for two cases of one error: 16 characters."""
    return hashlib.sha256(VARYING.sub("#", text).encode("utf-8", "replace")).hexdigest()[:16]
