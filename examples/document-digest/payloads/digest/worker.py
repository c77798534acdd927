"""What every worker of this example needs from the runtime: its message, its configuration, a way to report
while it runs, and a way to answer."""

import json
import os
import sys


def body():
    """The body of the message this attempt works on."""
    with open(os.environ["SVC_INPUT_FILE"], encoding="utf-8") as file:
        return json.load(file)


def config(section="digest"):
    """A section of config/default.json, with what the user changed for this job."""
    return json.loads(os.environ.get("SVC_BLUEPRINT_CONFIG_JSON") or "{}").get(section) or {}


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
