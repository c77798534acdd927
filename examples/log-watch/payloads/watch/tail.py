"""Follows log files: whole new lines of every file, each once, whatever happens to the files meanwhile.

A file is known by its inode, not by its name, so it may be renamed (app.log becomes app.log.1): it is read to its
end, and the new file of the old name from its beginning. A file that was cut short, or written anew, no longer has
the bytes before our place that we have read there, and is read from its beginning. A copy of a file that we know
(logrotate's copytruncate) has them, and is not read again.

`positions()` is all that has to be remembered for a next start.
"""

import fnmatch
import hashlib
import os
import stat
from pathlib import Path

FILES_MAX = 200
FOLDERS_MAX = 1_000
CHUNK_BYTES = 1024 * 1024
LINE_BYTES_MAX = 64 * 1024
MARK_BYTES = 128
# A program that writes on into a renamed file does so for a moment; then the file is left alone.
LOOKS_AFTER_RENAME = 20


class Followed:
    """One open file, and how far it has been read."""

    def __init__(self, fd, name, offset=0, skipping=False):
        self.fd = fd
        self.name = name
        self.offset = offset
        """Inside of a line that is longer than a line may be."""
        self.skipping = skipping
        self.looks_left = LOOKS_AFTER_RENAME
        self.mark = self._mark_at(offset)

    def position(self):
        return {"name": self.name, "offset": self.offset, "mark": self.mark, "skipping": self.skipping}

    def has_mark(self, offset, mark):
        """Whether the bytes before a place are those that somebody has read there."""
        return os.fstat(self.fd).st_size >= offset and self._mark_at(offset) == mark

    def new_lines(self):
        """Whole lines behind the place, at most a chunk of them; moves the place. None when nothing has moved."""
        # Compared at every look: a file that was written anew may have its old size again.
        if not self.has_mark(self.offset, self.mark):
            self.offset, self.skipping, self.mark = 0, False, self._mark_at(0)
        chunk = os.pread(self.fd, CHUNK_BYTES, self.offset)
        lines, used = self._split(chunk)
        if used == 0:
            return None
        self.offset += used
        self.mark = self._mark_at(self.offset)
        return lines

    def _split(self, chunk):
        lines, start = [], 0
        while (end := chunk.find(b"\n", start)) != -1:
            if not self.skipping:
                lines.append(text_of(chunk[start:end]))
            self.skipping, start = False, end + 1
        if len(chunk) - start > LINE_BYTES_MAX:
            if not self.skipping:
                lines.append(text_of(chunk[start : start + LINE_BYTES_MAX]))
            self.skipping, start = True, len(chunk)
        return lines, start

    def _mark_at(self, offset):
        begin = max(0, offset - MARK_BYTES)
        return hashlib.sha256(os.pread(self.fd, offset - begin, begin)).hexdigest()[:16]


class Tail:
    def __init__(self, folder, patterns, known, start_at_end):
        """@param known what `positions()` said before a restart; None at the first start"""
        self.folder = Path(folder)
        self.patterns = patterns
        self.files = {}
        """What somebody should know, each told once."""
        self.complaints = []
        self._complained = set()
        if known is None:
            self.look(at_end=start_at_end)
        else:
            self._resume(known)
            self.look()

    def positions(self):
        return {key: followed.position() for key, followed in self.files.items()}

    def look(self, at_end=False):
        """Finds new files, and lets go of those that are gone."""
        names = self._matching()
        for name, key in names.items():
            if key not in self.files:
                self._follow(name, key, at_end)
            elif self.files[key].name != name and names.get(self.files[key].name) != key:
                self.files[key].name = name
        present = set(names.values())
        for key, followed in list(self.files.items()):
            if key in present:
                followed.looks_left = LOOKS_AFTER_RENAME
                continue
            followed.looks_left -= 1
            if followed.looks_left <= 0 and os.fstat(followed.fd).st_size <= followed.offset:
                os.close(self.files.pop(key).fd)

    def new_lines(self):
        """(name, lines) of every file that was read on; a part of a very long line is no line."""
        for followed in list(self.files.values()):
            lines = followed.new_lines()
            if lines is not None:
                yield followed.name, lines

    def _matching(self):
        """The files to follow, as {name: identity}."""
        found, folders = {}, 0
        for place, inside, names in os.walk(self.folder):
            folders += 1
            inside.sort()
            if folders > FOLDERS_MAX:
                break
            for name in sorted(names):
                path = Path(place, name)
                if not any(fnmatch.fnmatch(name, pattern) for pattern in self.patterns):
                    continue
                key = identity(path, self.folder)
                if key is None:
                    continue
                if len(found) == FILES_MAX:
                    self._complain(f"There are more than {FILES_MAX} files; those from {name} on are not watched.")
                    return found
                found[path.relative_to(self.folder).as_posix()] = key
        return found

    def _follow(self, name, key, at_end):
        fd = open_file(self.folder / name)
        if fd is None and (self.folder / name).exists():
            self._complain(f"{name} may not be read, and is not watched.")
        if fd is None or key_of(os.fstat(fd)) != key:
            # It was replaced between two looks; the next one sees what it is now.
            if fd is not None:
                os.close(fd)
            return
        followed = Followed(fd, name)
        copied = next((one for one in self.files.values() if is_copy(followed, one)), None)
        if copied or at_end:
            place = copied.offset if copied else last_line_end(fd)
            followed = Followed(fd, name, place)
        self.files[key] = followed

    def _resume(self, known):
        """Finds the files again that were followed before, under whatever names they have now."""
        by_key = {}
        for place, _, names in os.walk(self.folder):
            for name in names:
                path = Path(place, name)
                key = identity(path, self.folder)
                if key in known:
                    by_key.setdefault(key, path)
        for key, position in known.items():
            fd = open_file(by_key[key]) if key in by_key else None
            if fd is None:
                continue
            followed = Followed(fd, position["name"], position["offset"], position["skipping"])
            # If the file is another one now, reading finds out and begins at its beginning.
            followed.mark = position["mark"]
            self.files[key] = followed

    def _complain(self, message):
        if message not in self._complained and len(self._complained) < FILES_MAX:
            self._complained.add(message)
            self.complaints.append(message)


def is_copy(followed, other):
    return other.offset >= MARK_BYTES and followed.has_mark(other.offset, other.mark)


def identity(path, folder):
    """What tells a file from others, whatever its name; None for what is no plain file inside the folder."""
    try:
        if path.is_symlink() and folder.resolve() not in path.resolve().parents:
            return None
        status = path.stat()
    except OSError:
        return None
    return key_of(status) if stat.S_ISREG(status.st_mode) else None


def key_of(status):
    return f"{status.st_dev}:{status.st_ino}"


def open_file(path):
    """None when it is gone, or may not be read."""
    try:
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None


def last_line_end(fd):
    """Behind the last whole line: a line that is being written is read when it is whole."""
    size = os.fstat(fd).st_size
    begin = max(0, size - LINE_BYTES_MAX)
    end = os.pread(fd, size - begin, begin).rfind(b"\n")
    return size if end == -1 else begin + end + 1


def text_of(line):
    return line.decode("utf-8", errors="replace").rstrip("\r")
