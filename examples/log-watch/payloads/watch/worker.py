"""What every worker of this example needs from the runtime: its configuration, a place that all workers of the run
share, what it remembers from before a restart, and a way to answer."""

import json
import os
import sys
from pathlib import Path


def body():
    """The body of the message this attempt works on."""
    with open(os.environ["SVC_INPUT_FILE"], encoding="utf-8") as file:
        return json.load(file)


def state():
    """What this agent's last answer said as next_state; {} at first."""
    with open(os.environ["SVC_CONTEXT_FILE"], encoding="utf-8") as file:
        return json.load(file).get("agent_state") or {}


def config(section):
    """A section of config/default.json, with what the user changed for this job."""
    return json.loads(os.environ.get("SVC_BLUEPRINT_CONFIG_JSON") or "{}").get(section) or {}


def shared():
    """The folder that all workers of the run share; it outlives restarts and goes with the run."""
    return Path(os.environ["SVC_RUN_DIR"])


def report(type, **payload):
    """Adds an event to the job's history at once."""
    path = os.environ.get("SVC_EVENT_STREAM")
    if path:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(json.dumps({"type": type, "payload": payload}) + "\n")


def answer(**result):
    """Prints one result object as one line: all of it acts, or, if the machine stops right now, nothing of it."""
    print(json.dumps(result), flush=True)


def give_up(reason):
    """Ends the attempt as failed. The last lines of stderr become part of the failure."""
    print(reason, file=sys.stderr)
    sys.exit(1)
