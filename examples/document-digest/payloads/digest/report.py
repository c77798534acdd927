"""Writes report.html and report.md from the gathered digests, and ends the run.

Documents are in the order of their file names, not in that of their arrival, so that the same documents give
the same report, byte for byte.
"""

import json
import os
from html import escape
from pathlib import Path
from string import Template

import library
import text
import worker

TITLE_OF_SHIPPED = "A small handbook of durable work"


def gathered(batches):
    """The digests of all batches, from the files that the readers have left for this run."""
    for batch in batches:
        path = Path(os.environ["SVC_RUN_DIR"], "digests", f"{batch}.jsonl")
        with open(path, encoding="utf-8") as file:
            yield from map(json.loads, file)


def markdown(title, documents, problems, totals):
    lines = [f"# {title}", "", totals_line(totals), ""]
    lines += ["| Document | Words | Sentences | Minutes |", "| --- | ---: | ---: | ---: |"]
    for one in documents:
        name = one["title"].replace("|", "\\|")
        lines.append(f"| {name} | {one['words']} | {one['sentences']} | {one['reading_minutes']} |")
    for one in documents:
        lines += ["", f"## {one['title']}", "", one["summary"], ""]
        lines += [f"**Key terms:** {', '.join(one['key_terms'])}", ""]
        lines += [f"- {heading}" for heading in one["headings"]]
    if problems:
        lines += ["", "## Not in this digest", ""]
        lines += [f"- `{one['file']}` {one['problem']}" for one in problems]
    return "\n".join(lines).rstrip() + "\n"


def totals_line(totals):
    return (
        f"{totals['documents']} documents, {totals['words']:,} words, {totals['sentences']} sentences, "
        f"{totals['reading_minutes']} minutes to read"
    )


def page(title, documents, problems, totals):
    longest = max((one["words"] for one in documents), default=1)
    template = Template((Path(__file__).parent / "page.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=escape(title),
        totals=escape(totals_line(totals)),
        rows="\n".join(row(number, one, longest) for number, one in enumerate(documents, 1)),
        articles="\n".join(article(number, one) for number, one in enumerate(documents, 1)),
        problems=left_out(problems),
    )


def left_out(problems):
    if not problems:
        return ""
    items = "".join(f"<li><b>{escape(one['file'])}</b> {escape(one['problem'])}</li>" for one in problems)
    return f'<section class="problems"><h2>Not in this digest</h2><ul>{items}</ul></section>'


def row(number, one, longest):
    return (
        f'<tr><td class="n">{number}</td><th scope="row"><a href="#d{number}">{escape(one["title"])}</a></th>'
        f'<td class="bar"><i style="width:{one["words"] / longest:.1%}"></i></td>'
        f'<td class="n">{one["words"]:,}</td><td class="n">{one["sentences"]}</td>'
        f'<td class="n">{one["reading_minutes"]}</td></tr>'
    )


def article(number, one):
    terms = "".join(f"<li>{escape(term)}</li>" for term in one["key_terms"])
    headings = "".join(f"<li>{escape(heading)}</li>" for heading in one["headings"])
    contents = f'<ol class="contents">{headings}</ol>' if headings else ""
    cut = " · only its first 16 MiB" if one["cut"] else ""
    return (
        f'<article id="d{number}"><header><span>{number}</span><h2>{escape(one["title"])}</h2></header>'
        f'<p class="summary">{escape(one["summary"])}</p><ul class="terms" aria-label="Key terms">{terms}</ul>'
        f'{contents}<footer>{escape(one["file"])} · {one["words"]:,} words · {one["sentences"]} sentences · '
        f'{one["reading_minutes"]} min{cut}</footer></article>'
    )


settings = worker.config()
digests = sorted(gathered(one["batch"] for one in worker.body()["messages"]), key=lambda one: one["file"])
documents = [one for one in digests if "problem" not in one]
problems = [one for one in digests if "problem" in one]
if not documents:
    worker.give_up("None of the documents could be read: " + "; ".join(f"{p['file']} {p['problem']}" for p in problems[:20]))
for one, terms in zip(documents, text.weigh([one["terms"] for one in documents], settings.get("key_terms", 8))):
    one["key_terms"] = terms
totals = {
    "documents": len(documents),
    "not_read": len(problems),
    "words": sum(one["words"] for one in documents),
    "sentences": sum(one["sentences"] for one in documents),
    "reading_minutes": round(sum(one["words"] for one in documents) / settings.get("words_per_minute", 220)),
}
title = settings.get("title") or (TITLE_OF_SHIPPED if library.is_shipped() else "Digest")

out = Path(os.environ["SVC_OUTPUT_DIR"])
(out / "report.md").write_text(markdown(title, documents, problems, totals), encoding="utf-8")
worker.report("progress", percent=50, label="report.md is written")
(out / "report.html").write_text(page(title, documents, problems, totals), encoding="utf-8")
worker.report("progress", percent=100, label="report.html is written")
worker.answer(complete_run={"report": ["report.html", "report.md"], **totals})
