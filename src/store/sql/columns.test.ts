import assert from "node:assert/strict";
import { test } from "node:test";
import { columnsOf, flag, json } from "./columns.ts";

interface Row {
  readonly note_id: string;
  readonly is_read: number;
  readonly tags_json: string | null;
  readonly job_id: string;
}

interface Note {
  readonly noteId: string;
  readonly read: boolean;
  readonly tags: readonly string[] | null;
}

const notes = columnsOf<Row, Note>({ noteId: "note_id", read: flag("is_read"), tags: json("tags_json") });

test("a record comes back from its row as it was, nulls, false and empty lists too", () => {
  for (const note of [
    { noteId: "a", read: true, tags: ["x", "y"] },
    { noteId: "", read: false, tags: [] },
    { noteId: "b", read: false, tags: null },
  ]) {
    assert.deepEqual(notes.toRecord(notes.toRow(note)), note);
  }
});

test("values come in the order of the columns' names", () => {
  assert.deepEqual(notes.names, ["note_id", "is_read", "tags_json"]);
  assert.deepEqual(notes.toValues({ tags: ["x"], read: true, noteId: "a" }), ["a", 1, '["x"]']);
  assert.deepEqual(notes.toRow({ tags: null, read: false, noteId: "a" }), {
    note_id: "a",
    is_read: 0,
    tags_json: null,
  });
});

test("columns of the row that are no field are left out of the record", () => {
  const row = { note_id: "a", is_read: 1, tags_json: null, job_id: "j" };
  assert.deepEqual(notes.toRecord(row), { noteId: "a", read: true, tags: null });
});
