"""Asked before a run is accepted, when documents.folder is a folder of the user's, and again when it has been copied."""

import json
import os
import sys
from pathlib import Path

config = json.loads(os.environ["SVC_BLUEPRINT_CONFIG_JSON"])
folder = Path(config["documents"]["folder"])

errors = []
if not any(path.suffix.lower() in {".md", ".txt"} for path in folder.rglob("*")):
    message = f"The folder {folder.name} holds no document; it needs at least one file that ends in .md or .txt."
    errors.append({"path": "documents.folder", "message": message})

# Exit code 0 and no errors: yes. Paths are dotted, as in the configuration.
print(json.dumps({"errors": errors, "warnings": []}))
sys.exit(1 if errors else 0)
