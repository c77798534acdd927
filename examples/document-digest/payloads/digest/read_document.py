"""Reads one document and emits its digest: counts, headings, a summary, and the terms that matter in it."""

from pathlib import Path

import text
import worker

file = worker.body()["file"]
settings = worker.config()

worker.report("progress", percent=10, label=f"reading {file}")
document = text.parse((Path("documents") / file).read_text(encoding="utf-8", errors="replace"), fallback_title=file)

worker.report("progress", percent=60, label=f"digesting {document.title}")
words = sum(len(text.words(sentence)) for sentence in document.sentences)
digest = {
    "file": file,
    "title": document.title,
    "headings": document.headings,
    "words": words,
    "sentences": len(document.sentences),
    "reading_minutes": round(words / settings.get("words_per_minute", 220), 1),
    "terms": text.term_counts(document.sentences, keep=60),
    "summary": text.summary(document.sentences, settings.get("summary_sentences", 2)),
}

worker.report("metric", name="words_read", value=words, unit="words")
worker.report("progress", percent=100, label=f"{document.title}: {words} words")
worker.answer(emit_messages=[{"type": "digest", "body": digest}])
