"""Which documents there are: the user's, where a folder was given, else those that ship with the blueprint."""

import os
from pathlib import Path

import worker

EXTENSIONS = {".md", ".markdown", ".txt", ".rst", ".html", ".htm", ".docx"}
SHIPPED = Path("documents")


def folder():
    """A staged folder is relative to the workspace; a blank setting means the shipped documents."""
    given = str(worker.config("documents").get("folder") or "").strip()
    return Path(given) if given else SHIPPED


def is_shipped():
    return folder() == SHIPPED


def documents():
    """Every document below the folder, by its path relative to it, in the order of these paths."""
    root, found = folder(), {}
    for place, folders, names in os.walk(root):
        folders.sort()
        for name in names:
            path = Path(place, name)
            if path.suffix.lower() in EXTENSIONS and path.is_file():
                found[path.relative_to(root).as_posix()] = path
    return dict(sorted(found.items()))
