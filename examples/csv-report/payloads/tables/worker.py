"""What every worker of this example needs from the runtime: its message, its configuration, a place that all
workers of the run share, a way to report while it runs, and a way to answer."""

import json
import os
import sys
from pathlib import Path


def body():
    """The body of the message this attempt works on."""
    with open(os.environ["SVC_INPUT_FILE"], encoding="utf-8") as file:
        return json.load(file)


def config(section):
    """A section of config/default.json, with what the user changed for this job."""
    return json.loads(os.environ.get("SVC_BLUEPRINT_CONFIG_JSON") or "{}").get(section) or {}


def shared(*names):
    """A place in the folder that all workers of the run share."""
    return Path(os.environ["SVC_RUN_DIR"], *names)


def save(path, value):
    """Writes JSON beside its place and moves it there: on disk, and whole, before anybody is told."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}")
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def report(type, **payload):
    """Adds an event to the job's history at once, while the worker goes on."""
    path = os.environ.get("SVC_EVENT_STREAM")
    if path:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(json.dumps({"type": type, "payload": payload}) + "\n")


def answer(**result):
    """Prints the result object. It has to be the last line of stdout."""
    print(json.dumps(result))


def give_up(reason):
    """Ends the attempt as failed. The last lines of stderr become part of the failure."""
    print(reason, file=sys.stderr)
    sys.exit(1)
