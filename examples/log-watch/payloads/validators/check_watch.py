"""Looks at what is to be watched before a run is accepted, and once more before it starts.

The folder is not copied, because new lines have to be seen in it: logs.folder is the same absolute path both times.
"""

import fnmatch
import itertools
import json
import os
import re
import sys

FILES_LOOKED_AT = 20_000

config = json.loads(os.environ.get("SVC_BLUEPRINT_CONFIG_JSON") or "{}")
logs, watch = config.get("logs") or {}, config.get("watch") or {}
errors, warnings = [], []

folder = str(logs.get("folder") or "").strip()
if os.path.isdir(folder):
    if not os.path.isabs(folder):
        errors.append({"path": "logs.folder", "message": "Give an absolute path: the watch runs in a folder of its own."})
    elif not os.access(folder, os.R_OK | os.X_OK):
        errors.append({"path": "logs.folder", "message": "The folder may not be read by the user that the runtime runs as."})
    else:
        patterns = logs.get("files") or []
        names = (name for _, _, inside in os.walk(folder) for name in inside)
        seen = itertools.islice(names, FILES_LOOKED_AT)
        if not any(fnmatch.fnmatch(name, pattern) for name in seen for pattern in patterns):
            text = f"No file matches {', '.join(patterns)} yet; those that appear later are watched."
            warnings.append({"path": "logs.files", "message": text})

expressions = [("watch.error_pattern", watch.get("error_pattern"))]
for number, one in enumerate(watch.get("patterns") or []):
    expressions.append((f"watch.patterns.{number}.pattern", one.get("pattern")))
for path, expression in expressions:
    try:
        if expression and re.compile(expression).search(""):
            errors.append({"path": path, "message": "Matches an empty line, and so every line."})
    except re.error as error:
        errors.append({"path": path, "message": f"Is no regular expression: {error}."})

print(json.dumps({"errors": errors, "warnings": warnings}))
sys.exit(1 if errors else 0)
