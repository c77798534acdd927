"""A long-lived worker: it ticks until it is told to end, and listens to messages meanwhile.

Each line that it prints is a result object and acts at once: a tick goes along the edges as a message, and
next_state is what the next start of this worker will find, so that a restarted clock counts on and does not
begin again. Each message to it arrives on stdin as one line of JSON; {"interval_ms": 200} changes the pace.
"""

import json
import os
import select
import signal
import sys
import time

STDIN = 0
FASTEST_MS = 10

signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))


def say(message_type, body, ticks):
    result = {"emit_messages": [{"type": message_type, "body": body}], "next_state": {"ticks": ticks}}
    # Without the flush, Python would keep the lines back until a few kilobytes have come together.
    print(json.dumps(result), flush=True)


def new_pace(line):
    """The interval that a message asks for; None if it asks for none."""
    body = json.loads(line).get("body")
    asked = body.get("interval_ms") if isinstance(body, dict) else None
    return max(FASTEST_MS, asked) if isinstance(asked, (int, float)) and not isinstance(asked, bool) else None


def incoming(timeout_s, unfinished):
    """Waits for input, at most so long; answers with the whole lines, what has no line end yet, and if it ended."""
    readable, _, _ = select.select([STDIN], [], [], max(0.0, timeout_s))
    if not readable:
        return [], unfinished, False
    chunk = os.read(STDIN, 65536)
    *lines, rest = (unfinished + chunk).split(b"\n")
    return lines, rest, chunk == b""


with open(os.environ["SVC_CONTEXT_FILE"], encoding="utf-8") as file:
    ticks = (json.load(file).get("agent_state") or {}).get("ticks", 0)
interval_ms = json.loads(os.environ.get("SVC_BLUEPRINT_CONFIG_JSON") or "{}").get("ticker", {}).get("interval_ms", 1000)

due = time.monotonic()
rest = b""
while True:
    lines, rest, ended = incoming(due - time.monotonic(), rest)
    if ended:
        sys.exit(0)
    for line in lines:
        pace = new_pace(line)
        if pace is not None:
            interval_ms = pace
            due = min(due, time.monotonic() + pace / 1000)
            say("pace", {"interval_ms": pace}, ticks)
    if time.monotonic() >= due:
        ticks += 1
        # After a pause of the machine the clock goes on from now; it does not make up for missed ticks.
        due = max(due + interval_ms / 1000, time.monotonic())
        say("tick", {"tick": ticks}, ticks)
