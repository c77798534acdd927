// Faults of the runner and of what it does with workers.

import type { Mutation } from "./mutation.ts";

const orphans = ["src/execution/process/orphans.test.ts"];
const workerPipes = ["src/execution/process/worker-pipes.test.ts"];
const spareFolders = ["src/execution/runner/spare-folders.test.ts"];
const usage = ["src/execution/process/usage.test.ts"];
const hostileWorker = ["src/execution/runner/hostile-worker.test.ts"];

export const executionMutations: readonly Mutation[] = [
  {
    fault: "the commands of a job that was taken over are not stopped",
    file: "src/engine/commit-barrier.ts",
    search: 'if (task.state.kind === "running") runner.stop(refOf(job, task));',
    replacement: "",
    tests: ["src/engine/job.test.ts"],
  },
  {
    fault: "a folder that is reached through a symlink is opened",
    file: "src/lib/open-folder.ts",
    search: "if (folder.realPath() === join(this.realPath(), way)) return folder;",
    replacement: "if (way !== null) return folder;",
    tests: hostileWorker,
  },
  {
    fault: "a symlink in the place of a folder is followed",
    file: "src/lib/open-folder.ts",
    search: "return openEntry(path, way);",
    replacement: "return new OpenFolder(path, FOLDER_FLAGS);",
    tests: ["src/lib/open-folder.test.ts"],
  },
  {
    fault: "folders with something in them are used again",
    file: "src/execution/runner/spare-folders.ts",
    search: "!isMadeAsNew(held, name)",
    replacement: "name === path",
    tests: spareFolders,
  },
  {
    fault: "a pipe that a worker put in the place of its own is taken for it",
    file: "src/execution/process/worker-pipes.ts",
    search: "found?.ino === inode",
    replacement: "found !== undefined",
    tests: spareFolders,
  },
  {
    fault: "what a worker wrote last is lost while the listener is busy",
    file: "src/execution/process/pipes.ts",
    search: "await this.#room;",
    replacement: "",
    tests: workerPipes,
  },
  {
    fault: "a pipe that somebody still has is given to another worker",
    file: "src/execution/process/worker-pipes.ts",
    search: "giveBack(path, isAtEnd)",
    replacement: "giveBack(path, true)",
    tests: workerPipes,
  },
  {
    fault: "what may have escaped a command is not searched for",
    file: "src/execution/process/process-trees.ts",
    search: "this.#mayHaveEscaped ||= !isGone;",
    replacement: "",
    tests: ["src/execution/process/process-trees.test.ts"],
  },
  {
    fault: "spare folders that were moved are used",
    file: "src/execution/runner/spare-folders.ts",
    search: "this.#assertInPlace(spare);",
    replacement: "",
    tests: spareFolders,
  },
  {
    fault: "an answer of a person is added to a file that has another name as well",
    file: "src/execution/runner/worker-input.ts",
    search: "if (found.nlink > 1)",
    replacement: "if (found.nlink > 1000)",
    tests: hostileWorker,
  },
  {
    fault: "where marks cannot be set, a sweep ends commands that are still running",
    file: "src/execution/process/process-trees.ts",
    search: "names.filter((name) => !this.#livePids.has(Number(name)))",
    replacement: "names",
    tests: ["src/execution/process/process-trees.test.ts"],
  },
  {
    fault: "a worker is started without a mark in its limits",
    file: "src/execution/process/spawner-process.ts",
    search: "withMark(mark, () => native?.start(spec, onExit) ?? spawnByNode(spec, onExit, failed))",
    replacement: "native?.start(spec, onExit) ?? spawnByNode(spec, onExit, failed)",
    tests: orphans,
  },
  {
    fault: "a worker is given the runtime's secrets",
    file: "src/execution/runner/worker-contract.ts",
    search: "config.passEnv.filter((name) => !isWithheldVariable(name))",
    replacement: "config.passEnv",
    tests: ["src/execution/runner/command.test.ts"],
  },
  {
    fault: "a wrong result of a long-lived worker is forgotten when it ends",
    file: "src/execution/output/attempt-output.ts",
    search: "this.#wrong ??= reading;",
    replacement: "",
    tests: ["src/execution/runner/long-lived.test.ts"],
  },
  {
    fault: "every line of stderr is a warning",
    file: "src/execution/output/attempt-output.ts",
    search: 'this.#log(levelOfLine(line), "stderr", line, cut)',
    replacement: 'this.#log("warn", "stderr", line, cut)',
    tests: ["src/execution/output/log-level.test.ts"],
  },
  {
    fault: "a line of stdout has the level info, whatever it says",
    file: "src/execution/output/attempt-output.ts",
    search: 'this.#log(levelOfLine(line), "stdout", line, cut)',
    replacement: 'this.#log("info", "stdout", line, cut)',
    tests: ["src/execution/output/log-level.test.ts"],
  },
  {
    fault: "what is left by a process that has ended is no longer counted for its worker",
    file: "src/execution/process/usage.ts",
    search: "new Set([rootPid, ...starts.keys()])",
    replacement: "new Set([rootPid])",
    tests: usage,
  },
];
