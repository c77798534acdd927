"""Counts the words of every document in the folder, and writes them as a table."""

import csv
import json
import os
from pathlib import Path

config = json.loads(os.environ["SVC_BLUEPRINT_CONFIG_JSON"])

# The user's folder was copied beside this program, and the configuration names the copy.
folder = Path(config["documents"]["folder"])
documents = sorted(path for path in folder.rglob("*") if path.is_file())

total = 0
with open(Path(os.environ["SVC_OUTPUT_DIR"], "words.csv"), "w", encoding="utf-8", newline="") as file:
    table = csv.writer(file)
    table.writerow(["document", "words"])
    for path in documents:
        words = len(path.read_text(encoding="utf-8", errors="replace").split())
        table.writerow([path.relative_to(folder).as_posix(), words])
        total += words

print(json.dumps({"complete_run": {"documents": len(documents), "words": total}}))
