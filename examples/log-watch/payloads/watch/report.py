"""Writes the findings so far: summary.html for people, findings.jsonl for programs. Started for each refresh."""

import json
import os
import unicodedata
from html import escape
from pathlib import Path
from string import Template

import worker
from ledger import records

FINDINGS_MAX = 2_000
ROWS_MAX = 300
KINDS = {
    "new_error": "New error",
    "error_burst": "Burst of errors",
    "pattern": "Pattern",
    "silence": "Silence",
    "heard_again": "Heard again",
    "more": "And more",
}


def shown(text):
    """Text as it can be shown: control characters and those that turn the direction of writing are replaced."""
    return escape("".join("�" if unicodedata.category(char) in ("Cc", "Cf", "Cs") and char != "\t" else char for char in text))


def row(one):
    line = f"<pre>{shown(one['line'])}</pre>" if one["line"] else ""
    file = f'<span class="file">{shown(one["file"])}</span>' if one["file"] else ""
    return (
        f'<li class="{one["level"]}"><p><time datetime="{one["at"]}">{one["at"][:19].replace("T", " ")}</time> '
        f"<b>{KINDS[one['kind']]}</b> {file}</p><p>{shown(one['message'])}</p>{line}</li>"
    )


def counts(findings):
    cells = []
    for kind, title in KINDS.items():
        count = sum(one["kind"] == kind for one in findings)
        if count:
            cells.append(f"<div><dt>{title}</dt><dd>{count:,}</dd></div>")
    return "".join(cells)


body = worker.body()
findings = list(records(worker.shared(), body["ledger"]))[-FINDINGS_MAX:]
totals = body["totals"]
out = Path(os.environ["SVC_OUTPUT_DIR"])
with open(out / "findings.jsonl", "w", encoding="utf-8") as file:
    for one in findings:
        file.write(json.dumps(one) + "\n")

rows = "\n".join(row(one) for one in reversed(findings[-ROWS_MAX:]))
older = totals["findings"] - min(len(findings), ROWS_MAX)
files = body["files"]
template = Template((Path(__file__).parent / "page.html").read_text(encoding="utf-8"))
page = template.substitute(
    since=body["since"][:19].replace("T", " "),
    at=body["at"][:19].replace("T", " "),
    files=shown(", ".join(files[:20]) + (f" and {len(files) - 20} more" if len(files) > 20 else "")) or "none yet",
    lines=f"{totals['lines']:,}",
    errors=f"{totals['errors']:,}",
    findings=f"{totals['findings']:,}",
    counts=counts(findings),
    rows=f'<ol class="found">{rows}</ol>' if rows else '<p class="good">Nothing was found so far.</p>',
    older=f'<p class="soft">{older:,} older ones are not shown.</p>' if older > 0 else "",
)
(out / "summary.html").write_text(page, encoding="utf-8")
worker.answer(complete_step=totals)
