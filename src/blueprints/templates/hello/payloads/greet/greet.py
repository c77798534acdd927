"""Greets the person named in the run's inputs, with the word of the configuration."""

import json
import os
from pathlib import Path

message = json.loads(Path(os.environ["SVC_INPUT_FILE"]).read_text(encoding="utf-8"))
config = json.loads(os.environ["SVC_BLUEPRINT_CONFIG_JSON"])

greeting = f"{config['greeting']['word']}, {message.get('name', 'world')}!"

# Every file left in SVC_OUTPUT_DIR is kept; the ones that manifest.json names under outputs are what the run is for.
Path(os.environ["SVC_OUTPUT_DIR"], "greeting.txt").write_text(greeting + "\n", encoding="utf-8")

# The last line of stdout is the answer.
print(json.dumps({"complete_run": {"greeting": greeting}}))
