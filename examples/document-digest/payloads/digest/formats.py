"""Takes documents apart: Markdown, plain text, reStructuredText, HTML and Word become headings and sentences.

What comes in is anybody's file: reading is bounded, nothing in a document is executed or fetched, and what cannot
be read says why.
"""

import re
import zipfile
from dataclasses import dataclass
from html.parser import HTMLParser
from xml.etree import ElementTree

BYTES_MAX = 16 * 1024 * 1024

# Written so that no text, however odd, takes longer than its length.
HEADING = re.compile(r"#{1,6}\s+(?=\S)")
UNDERLINE = re.compile(r"([=\-~^*+#\"'`])\1{2,}\s*$")
FENCE = re.compile(r"\s*(?:```|~~~)")
MARKUP = re.compile(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}")
LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()]{0,2000}\)")
SENTENCE_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"”’)]))\s+(?=[\"“‘(]*[^\W_a-zà-öø-ÿ])")


class Unreadable(Exception):
    """The message says what is wrong with the document."""


@dataclass
class Document:
    title: str
    headings: list
    sentences: list
    cut: bool


def read(path):
    """Reads a document of any of the known kinds, at most its first 16 MiB."""
    kind = path.suffix.lower()
    try:
        if kind == ".docx":
            blocks, cut = word_blocks(path)
        else:
            source, cut = decoded(path)
            blocks = html_blocks(source) if kind in (".html", ".htm") else text_blocks(source)
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror})") from error
    headings = [text for is_heading, text in blocks if is_heading]
    sentences = [
        sentence
        for is_heading, text in blocks
        if not is_heading
        for sentence in SENTENCE_END.split(text)
        if sentence
    ]
    return Document(headings[0] if headings else path.stem, headings[1:], sentences, cut)


def decoded(path):
    with open(path, "rb") as file:
        data = file.read(BYTES_MAX + 1)
    cut, data = len(data) > BYTES_MAX, data[:BYTES_MAX]
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace"), cut
    if b"\0" in data[:4096]:
        raise Unreadable("is no text")
    try:
        return data.decode("utf-8-sig", errors="replace" if cut else "strict"), cut
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace"), cut


def text_blocks(source):
    """Paragraphs are lines up to an empty one. A heading begins with #, or has a line of === or --- below it."""
    blocks, paragraph, in_code = [], [], False

    def end_paragraph():
        if paragraph:
            blocks.append((False, " ".join(paragraph)))
            paragraph.clear()

    for line in body_of(source).splitlines():
        if FENCE.match(line):
            in_code = not in_code
            end_paragraph()
        elif in_code:
            continue
        elif heading := HEADING.match(line):
            end_paragraph()
            blocks.append((True, plain(line[heading.end() :].rstrip().rstrip("#").rstrip())))
        elif UNDERLINE.match(line):
            if len(paragraph) == 1:
                blocks.append((True, paragraph.pop()))
            end_paragraph()
        elif line.strip():
            paragraph.append(plain(line.strip()))
        else:
            end_paragraph()
    end_paragraph()
    return blocks


def body_of(source):
    """Leaves out what some tools keep at the top between two lines of ---."""
    if source.startswith("---\n"):
        end = source.find("\n---\n", 3, 20_000)
        if end != -1:
            return source[end + 5 :]
    return source


def plain(text):
    return MARKUP.sub("", LINK.sub(r"\1", text))


class HtmlText(HTMLParser):
    HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
    BLOCKS = HEADINGS | set(
        "p div li ul ol dl dt dd td th tr table section article header main blockquote pre br hr figure".split()
    )
    # <nav> and <footer> are about the site, not about the document.
    LEFT_OUT = {"script", "style", "template", "svg", "nav", "footer"}

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.blocks = []
        self.title = ""
        self.text = []
        self.tag = None
        self.left_out = 0

    def end_block(self):
        text = " ".join("".join(self.text).split())
        self.text = []
        if text:
            self.blocks.append((self.tag in self.HEADINGS, text))

    def handle_starttag(self, tag, attrs):
        if tag in self.LEFT_OUT:
            self.left_out += 1
        if tag in self.BLOCKS or tag == "title":
            self.end_block()
            self.tag = tag

    def handle_endtag(self, tag):
        if tag in self.LEFT_OUT:
            self.left_out = max(0, self.left_out - 1)
        if tag == "title":
            self.title = " ".join("".join(self.text).split())
            self.text = []
        if tag in self.BLOCKS:
            self.end_block()
        if tag in self.BLOCKS or tag == "title":
            self.tag = None

    def handle_data(self, data):
        if self.left_out == 0:
            self.text.append(data)


def html_blocks(source):
    parser = HtmlText()
    parser.feed(source)
    parser.close()
    parser.end_block()
    has_heading = any(is_heading for is_heading, _ in parser.blocks)
    return parser.blocks if has_heading or not parser.title else [(True, parser.title), *parser.blocks]


WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def word_blocks(path):
    """The paragraphs of a Word document's main text; those in the styles Title and Heading are headings."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open("word/document.xml") as file:
            xml = file.read(BYTES_MAX + 1)
    except (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError, EOFError) as error:
        raise Unreadable("is no Word document") from error
    if len(xml) > BYTES_MAX:
        raise Unreadable("is a Word document of more than 16 MiB of text")
    # Word writes no document type; what has one may want to expand entities without end.
    if b"<!DOCTYPE" in xml:
        raise Unreadable("is a Word document with a document type, which Word does not write")
    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise Unreadable("is a damaged Word document") from error
    blocks = []
    for paragraph in root.iter(f"{WORD}p"):
        text = " ".join("".join(one.text or "" for one in paragraph.iter(f"{WORD}t")).split())
        style = paragraph.find(f"{WORD}pPr/{WORD}pStyle")
        name = (style.get(f"{WORD}val") or "") if style is not None else ""
        if text:
            blocks.append((name.lower().startswith(("heading", "title")), text))
    return blocks, False
