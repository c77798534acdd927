"""Looks at the folder before a run is accepted, and once more at its copy before the run starts.

Both times the configuration is in SVC_BLUEPRINT_CONFIG_JSON. Before the copy tables.folder is the user's own folder,
an absolute path; after it, a path relative to here. Blank means the tables that ship with the blueprint.
"""

import json
import os
import sys
from pathlib import Path

SHIPPED = "data"
TABLES_MAX = 500
SPREADSHEETS = {".xlsx", ".xls", ".ods"}

config = json.loads(os.environ.get("SVC_BLUEPRINT_CONFIG_JSON") or "{}")
given = str((config.get("tables") or {}).get("folder") or "").strip()
folders = (config.get("local_inputs") or {}).get("folders") or [{}]
extensions = {extension.lower() for extension in folders[0].get("allowed_extensions") or []}

# Stops looking when there are too many: the folder may be somebody's whole disk.
tables, filled, spreadsheets = 0, 0, []
for place, _, names in os.walk(given or SHIPPED):
    for name in names:
        path = Path(place, name)
        if path.suffix.lower() in SPREADSHEETS:
            spreadsheets.append(name)
        elif path.suffix.lower() in extensions:
            tables += 1
            filled += path.is_file() and path.stat().st_size > 0
    if tables > TABLES_MAX:
        break

errors, warnings = [], []
where = "tables.folder"
if given and not os.path.isdir(given):
    pass  # The runtime reports it.
elif tables == 0:
    hint = f" Save {spreadsheets[0]} as CSV first." if spreadsheets else ""
    errors.append({"path": where, "message": f"Holds no table ({', '.join(sorted(extensions))}).{hint}"})
elif tables > TABLES_MAX:
    errors.append({"path": where, "message": f"Holds more than {TABLES_MAX} tables; report on it folder by folder."})
elif filled == 0:
    errors.append({"path": where, "message": "Its tables are all empty; there is nothing to report."})
elif spreadsheets:
    warnings.append({"path": where, "message": f"Spreadsheets are left out: {', '.join(spreadsheets[:5])}."})

print(json.dumps({"errors": errors, "warnings": warnings}))
sys.exit(1 if errors else 0)
