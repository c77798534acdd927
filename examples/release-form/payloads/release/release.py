"""Asks a person what to release, and releases it.

The question is in the result, and the program ends with it: nothing is held while the person thinks. The answer starts it
again, as a message. Its data fits the schema, or would have been refused.
"""

import json
import os

QUESTION = {
    "request_id": "release",
    "prompt": "What is released, and to whom?",
    "allowed_decisions": ["to everybody", "to testers"],
    "data_schema": {
        "type": "object",
        "required": ["version"],
        "additionalProperties": False,
        "properties": {
            "version": {"type": "integer", "minimum": 1, "title": "Version"},
            "announce": {"type": "boolean", "title": "Announce it"},
            "notes": {"type": "string", "maxLength": 400, "title": "What is new"},
        },
    },
}


def read(variable):
    with open(os.environ[variable], encoding="utf-8") as file:
        return json.load(file)


if read("SVC_MESSAGE_FILE")["type"] == "human_response":
    answer = read("SVC_BODY_FILE")
    print(json.dumps({"complete_step": {"released": answer["decision"], **answer["data"]}}))
else:
    print(json.dumps({"events": [{"type": "human_input_requested", "payload": QUESTION}]}))
