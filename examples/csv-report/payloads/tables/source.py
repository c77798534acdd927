"""From bytes to rows: which encoding a file has, which delimiter, and its rows one by one.

What comes in is anybody's file. Nothing here holds more than one row in memory, and a row is bounded too.
"""

import codecs
import csv
import hashlib
from collections import Counter
from dataclasses import dataclass

CHUNK_BYTES = 1024 * 1024
LINE_CHARS_MAX = 4 * 1024 * 1024
FIELD_CHARS_MAX = 1024 * 1024
ROW_CHARS_MAX = 16 * 1024 * 1024
SAMPLE_LINES = 300
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
# A quoted field may hold line ends; one that holds so many has lost its closing quote.
LINES_PER_ROW_MAX = 1_000

csv.field_size_limit(FIELD_CHARS_MAX)


class Unreadable(Exception):
    """The message says what is wrong with the file."""


@dataclass
class Source:
    path: object
    size: int
    sha256: str
    encoding: str
    byte_order_mark: bool
    """Whether the encoding is a guess: the bytes are not UTF-8."""
    guessed: bool
    nul_bytes: int
    delimiter: str = ","
    """Lines before the first row: 1 when the file begins with sep=."""
    skipped_lines: int = 0


def look(path, delimiter="auto"):
    """Reads all bytes once: digest, encoding, NULs. Then the first lines for the delimiter."""
    digest, decoder, valid, nuls, size = hashlib.sha256(), codecs.getincrementaldecoder("utf-8")(), True, 0, 0
    head = b""
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            head = head or chunk[:65_536]
            size += len(chunk)
            digest.update(chunk)
            nuls += chunk.count(0)
            try:
                if valid:
                    decoder.decode(chunk)
            except UnicodeDecodeError:
                valid = False
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        valid = False
    encoding, mark, guessed = encoding_of(head, valid)
    if head.startswith(b"PK\x03\x04"):
        raise Unreadable("is a spreadsheet or another zip file, whatever its name says; save it as CSV")
    if "utf-16" not in encoding and head.count(0) > max(64, len(head) / 20):
        raise Unreadable("is no text: it is full of NUL bytes")
    nul_bytes = 0 if "utf-16" in encoding else nuls
    source = Source(path, size, digest.hexdigest(), encoding, mark, guessed, nul_bytes)
    choose_delimiter(source, delimiter)
    return source


def encoding_of(head, is_utf8):
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if head.startswith(mark):
            return (name, True, False) if is_utf8 or name == "utf-16" else ("cp1252", True, True)
    # Plain letters in UTF-16 are every other byte NUL, and nothing else looks like that.
    even, odd = head[0:4096:2].count(0), head[1:4096:2].count(0)
    half = min(len(head), 4096) / 2
    if half and max(even, odd) > 0.6 * half and min(even, odd) < 0.1 * half:
        return ("utf-16-be" if even > odd else "utf-16-le"), False, True
    return ("utf-8", False, False) if is_utf8 else ("cp1252", False, True)


def choose_delimiter(source, wanted):
    with open_text(source) as file:
        first = file.readline(LINE_CHARS_MAX)
        lines = [first, *(file.readline(LINE_CHARS_MAX) for _ in range(SAMPLE_LINES))]
    declared = first.strip().strip('"')
    if declared.lower().startswith("sep=") and len(declared) == 5:
        source.delimiter, source.skipped_lines = declared[4], 1
    elif declared.lower() == "sep=":
        source.delimiter, source.skipped_lines = "\t", 1
    elif wanted != "auto":
        source.delimiter = wanted
    else:
        source.delimiter = most_even([line.replace("\0", "") for line in lines if line])


def most_even(lines):
    """The delimiter by which the most lines have the same number of fields, and more than one."""

    def evenness(delimiter):
        try:
            widths = Counter(len(row) for row in csv.reader(lines, delimiter=delimiter) if row)
        except csv.Error:
            return (0.0, 0)
        width, rows = max(widths.items(), key=lambda item: (item[1], item[0]), default=(0, 0))
        return (rows / sum(widths.values()), width) if width > 1 else (0.0, 0)

    return max(DELIMITERS, key=evenness)


def open_text(source):
    return open(source.path, encoding=source.encoding, errors="replace", newline="")


class Rows:
    """The rows of a table, with the number of the line that each ends in. Reading stops where it makes no sense."""

    def __init__(self, source):
        self.source = source
        self.line = source.skipped_lines
        """Why reading has stopped before the end; None otherwise."""
        self.stopped = None
        """Line of the first row that spans many lines; None without one."""
        self.endless_quote = None
        self._row_chars = 0
        self._file = None

    def bytes_read(self):
        return self._file.buffer.tell() if self._file else 0

    def __iter__(self):
        with open_text(self.source) as self._file:
            for _ in range(self.source.skipped_lines):
                self._file.readline(LINE_CHARS_MAX)
            reader = csv.reader(self._lines(), delimiter=self.source.delimiter)
            try:
                for row in reader:
                    start, self.line = self.line + 1, reader.line_num + self.source.skipped_lines
                    if self.line - start > LINES_PER_ROW_MAX and self.endless_quote is None:
                        self.endless_quote = start
                    self._row_chars = 0
                    yield row
            except csv.Error:
                line = self.line + 1
                self.stopped = f"A field that begins at line {line} or behind is longer than a field can be; a closing quote is missing."
            except Unreadable as reason:
                self.stopped = str(reason)
            self._file = None

    def _lines(self):
        while line := self._file.readline(LINE_CHARS_MAX):
            if len(line) == LINE_CHARS_MAX:
                raise Unreadable(f"Line {self.line + 1}, or one soon behind it, is longer than a line can be.")
            self._row_chars += len(line)
            if self._row_chars > ROW_CHARS_MAX:
                raise Unreadable(f"The row at line {self.line + 1} is longer than a row can be; a closing quote is missing.")
            yield line.replace("\0", "") if "\0" in line else line
