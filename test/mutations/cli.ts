// Faults of the command line: what it understands, what it prints, and what it exits with.

import type { Mutation } from "./mutation.ts";

const command = ["src/cli/command.test.ts"];
const session = ["src/cli/session.test.ts"];
const text = ["src/cli/text.test.ts"];

export const cliMutations: readonly Mutation[] = [
  {
    fault: "wrong usage exits as a failure does",
    file: "src/cli/cli.ts",
    search: "return { code: exitCodes.usage, lines: named(error.message) };",
    replacement: "return { code: exitCodes.failure, lines: named(error.message) };",
    tests: command,
  },
  {
    fault: "an option's value that looks like another option is taken for its value",
    file: "src/cli/command.ts",
    search: 'value === "" || looksLikeOption)',
    replacement: 'value === "" || (looksLikeOption && value === ""))',
    tests: command,
  },
  {
    fault: "a word too many is ignored",
    file: "src/cli/command.ts",
    search: "if (extra !== undefined) throw",
    replacement: 'if (extra === "") throw',
    tests: command,
  },
  {
    fault: "a misspelt option does not name the nearest one",
    file: "src/cli/command.ts",
    search: "(nearest === null ?",
    replacement: '(nearest !== "" ?',
    tests: command,
  },
  {
    fault: "control characters reach the terminal",
    file: "src/cli/text.ts",
    search: '.replace(/[\\p{Cc}\\p{Cf}\\p{Co}]/gu, "")',
    replacement: "",
    tests: text,
  },
  {
    fault: "cells of tables are not cleaned",
    file: "src/cli/text.ts",
    search: 'row.map((cell) => cleanText(cell ?? ""))',
    replacement: 'row.map((cell) => String(cell ?? ""))',
    tests: text,
  },
  {
    fault: "JSON is printed with characters that reorder text",
    file: "src/cli/text.ts",
    search: "unitEscape(hidden.charCodeAt(i))",
    replacement: "hidden.charAt(i)",
    tests: ["src/cli/text.test.ts", "test/integration/cli.test.ts"],
  },
  {
    fault: "what the gateway finds invalid exits as a failure does",
    file: "src/cli/session.ts",
    search: "inputStatuses.has(error.status)\n    ? new UsageError(text)\n    : new CommandFailed(text);",
    replacement: "false ? error : new CommandFailed(text);",
    tests: session,
  },
  {
    fault: "the errors of a problem are not shown",
    file: "src/cli/session.ts",
    search: "    ...entryLines(error),\n",
    replacement: "",
    tests: session,
  },
  {
    fault: "401 does not say which variable to set",
    file: "src/cli/session.ts",
    search: "if (problem.status === 401)",
    replacement: "if (problem.status === 0)",
    tests: session,
  },
  {
    fault: "a cancelled run that the gateway was asked for exits as a failed one",
    file: "src/cli/watching.ts",
    search: 'return status === "cancelled" ? exitCodes.cancelled : exitCodes.failure;',
    replacement: "return exitCodes.failure;",
    tests: ["test/integration/cli-gateway.test.ts"],
  },
  {
    fault: "a failed run exits with success",
    file: "src/cli/watching.ts",
    search: "exitCodes.cancelled : exitCodes.failure;",
    replacement: "exitCodes.cancelled : exitCodes.success;",
    tests: ["test/integration/cli.test.ts"],
  },
  {
    fault: "Ctrl-C while a run is watched exits with success",
    file: "src/cli/watching.ts",
    search: "if (!(await isOver(call, run.id, waiting))) return exitCodes.interrupted;",
    replacement: "if (!(await isOver(call, run.id, waiting))) return exitCodes.success;",
    tests: ["test/integration/cli-gateway.test.ts"],
  },
  {
    fault: "a list that was cut at its limit does not say so",
    file: "src/cli/lists.ts",
    search: "call.terminal.note(`The newest ${limit}; --all shows all.`);",
    replacement: "",
    tests: ["src/cli/lists.test.ts"],
  },
  {
    fault: "a list of exactly its limit says that there are more",
    file: "src/cli/lists.ts",
    search: "if (count === limit)",
    replacement: "if (count + 1 === limit)",
    tests: ["src/cli/lists.test.ts"],
  },
  {
    fault: "a run is started though its outputs could not be saved into a folder that is not empty",
    file: "src/cli/save.ts",
    search: 'call.flag("force") === true || isEmpty(folder)',
    replacement: 'call.flag("force") === true || folder.length > 0',
    tests: ["test/integration/cli-gateway.test.ts"],
  },
  {
    fault: "a file that was changed on its way is saved",
    file: "src/cli/save.ts",
    search: 'if (hash.digest("hex") !== sha256)',
    replacement: 'if (hash.digest("hex") === "")',
    tests: ["src/cli/save.test.ts"],
  },
  {
    fault: "`troupe doctor` exits with success whatever it finds",
    file: "src/cli/doctor.ts",
    search: 'return findings.some(({ state }) => state === "fail") ? exitCodes.failure : exitCodes.success;',
    replacement: "return exitCodes.success;",
    tests: ["test/integration/cli.test.ts"],
  },
];
