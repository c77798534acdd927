"""Reads a batch of documents: counts, headings, a summary, and the terms that matter in each.

The digests go into a file in the folder that all workers of the run share, and only its name travels: a thousand
digests are more than a message may hold. A batch that is read again after a crash writes the same file again.
"""

import json
import os
from pathlib import Path

import formats
import library
import text
import worker

settings = worker.config()


def digest(file):
    try:
        document = formats.read(library.folder() / file)
    except formats.Unreadable as reason:
        return {"file": file, "problem": str(reason)}
    words = sum(len(text.words(sentence)) for sentence in document.sentences)
    if words == 0:
        return {"file": file, "problem": "holds no text"}
    return {
        "file": file,
        "title": document.title[:300],
        "headings": [heading[:300] for heading in document.headings[:100]],
        "words": words,
        "sentences": len(document.sentences),
        "reading_minutes": round(words / settings.get("words_per_minute", 220), 1),
        "terms": text.term_counts(document.sentences, keep=60),
        "summary": text.summary(document.sentences, settings.get("summary_sentences", 2)),
        "cut": document.cut,
    }


def keep(batch, digests):
    """Written beside its place and moved into it, on disk before anybody is told."""
    folder = Path(os.environ["SVC_RUN_DIR"], "digests")
    folder.mkdir(exist_ok=True)
    temporary = folder / f".{batch}"
    with open(temporary, "w", encoding="utf-8") as file:
        for one in digests:
            file.write(json.dumps(one) + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, folder / f"{batch}.jsonl")


message = worker.body()
digests = []
for number, file in enumerate(message["files"]):
    worker.report("progress", percent=round(100 * number / len(message["files"])), label=f"reading {file}")
    one = digest(file)
    digests.append(one)
    worker.report("metric", name="words_read", value=one.get("words", 0), unit="words")
    if "problem" in one:
        worker.report("log", level="warn", message=f"{file}: {one['problem']}")
keep(message["batch"], digests)
last = digests[-1]
worker.report("progress", percent=100, label=f"{last['file']}: {last.get('problem') or str(last['words']) + ' words'}")
worker.answer(emit_messages=[{"type": "digest", "body": {"batch": message["batch"], "documents": len(digests)}}])
