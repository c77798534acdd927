// Makes sdk/openapi.json and sdk/src/generated.ts from the running program, so that they are what a client meets.

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { problemCodes } from "../src/http/core/problem-codes.ts";
import { startProgram } from "../test/support/program.ts";
import { type Document, stableText } from "./generator/document.ts";
import { generatedText } from "./generator/generated-text.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

/** The files that are made, by their path inside the project. */
export async function generatedFiles(): Promise<Readonly<Record<string, string>>> {
  const document = await servedDocument();
  return {
    "sdk/openapi.json": formatted("openapi.json", stableText(document)),
    "sdk/src/generated.ts": formatted("generated.ts", generatedText(document, problemCodes)),
  };
}

async function servedDocument(): Promise<Document> {
  await using program = await startProgram({ args: ["gateway"] });
  const answer = await fetch(`${program.url}/openapi.json`);
  if (!answer.ok) throw new Error(`GET /openapi.json answers ${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as Document;
}

function formatted(name: string, text: string): string {
  const biome = spawnSync("node_modules/.bin/biome", ["format", `--stdin-file-path=${name}`], {
    cwd: root,
    input: text,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  if (biome.status !== 0) throw new Error(`${name} cannot be formatted:\n${biome.stderr}`);
  return biome.stdout;
}

if (import.meta.main) {
  for (const [path, text] of Object.entries(await generatedFiles())) {
    writeFileSync(`${root}${path}`, text);
    console.log(`${path}: ${text.length} characters`);
  }
}
