"""Looks at the folder before a run is accepted, and once more at its copy before the run starts.

Both times the configuration is in SVC_BLUEPRINT_CONFIG_JSON. Before the copy documents.folder is the user's own
folder, an absolute path; after it, a path relative to here. Blank means the documents that ship with the blueprint.
"""

import json
import os
import sys
from pathlib import Path

SHIPPED = "documents"
DOCUMENTS_MAX = 5_000

config = json.loads(os.environ.get("SVC_BLUEPRINT_CONFIG_JSON") or "{}")
given = str((config.get("documents") or {}).get("folder") or "").strip()
folders = (config.get("local_inputs") or {}).get("folders") or [{}]
extensions = {extension.lower() for extension in folders[0].get("allowed_extensions") or []}

# Stops looking when there are too many: the folder may be somebody's whole disk.
count, size, broken = 0, 0, []
for place, _, names in os.walk(given or SHIPPED):
    for name in names:
        path = Path(place, name)
        if path.suffix.lower() not in extensions:
            continue
        count += 1
        try:
            size += path.stat().st_size
        except OSError as error:
            broken.append(f"{path.name} ({error.strerror})")
    if count > DOCUMENTS_MAX:
        break

errors, warnings = [], []
where = "documents.folder"
if given and not os.path.isdir(given):
    pass  # The runtime reports it.
elif count == 0:
    errors.append({"path": where, "message": f"Holds no document ({', '.join(sorted(extensions))}); choose another folder."})
elif count > DOCUMENTS_MAX:
    errors.append({"path": where, "message": f"Holds more than {DOCUMENTS_MAX:,} documents; digest it folder by folder."})
elif size == 0:
    errors.append({"path": where, "message": "Its documents are all empty; there is nothing to digest."})
if broken:
    warnings.append({"path": where, "message": f"Some documents cannot be read: {', '.join(broken[:5])}."})

print(json.dumps({"errors": errors, "warnings": warnings}))
sys.exit(1 if errors else 0)
