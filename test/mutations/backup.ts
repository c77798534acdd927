// Faults of backups and of what is restored from them.

import type { Mutation } from "./mutation.ts";

const tests = ["src/backup/backup.test.ts"];

export const backupMutations: readonly Mutation[] = [
  {
    fault: "the secret key is put into every backup",
    file: "src/backup/backup.ts",
    search: "const hasKey = request.withKey && (await exists(join(home, KEY_FILE)));",
    replacement: "const hasKey = await exists(join(home, KEY_FILE));",
    tests,
  },
  {
    fault: "of what is removed while a backup is made, the backup's rows still name it",
    file: "src/backup/backup.ts",
    search: "if (isLost || moment === MOMENTS_MAX)",
    replacement: "if (isLost || moment < MOMENTS_MAX)",
    tests,
  },
  {
    fault: "a damaged blob is backed up without a word",
    file: "src/backup/backup.ts",
    search: "sha256 !== basename(path)) this.#damaged.push(path);",
    replacement: "sha256 === null) this.#damaged.push(path);",
    tests,
  },
  {
    fault: "the version that a resource's link leads to is not backed up",
    file: "src/backup/backup.ts",
    search: "await this.#addTree(join(dirname(path), await readlink(join(this.#home, path))));",
    replacement: "",
    tests,
  },
  {
    fault: "a backup that fails leaves its unfinished files",
    file: "src/backup/backup.ts",
    search: "await rm(folder, { recursive: true, force: true });",
    replacement: "",
    tests,
  },
  {
    fault: "a restore does not compare what it has unpacked with SHA256SUMS",
    file: "src/backup/restore.ts",
    search: "if (wrong !== undefined) throw damaged(",
    replacement: "if (wrong === null) throw damaged(",
    tests,
  },
  {
    fault: "an archive without SHA256SUMS is restored",
    file: "src/backup/restore.ts",
    search: "if (!isComplete || about === null)",
    replacement: "if (about === null)",
    tests,
  },
  {
    fault: "a backup is restored over what a home holds",
    file: "src/backup/restore.ts",
    search: "if (present.length > 0)",
    replacement: "if (present.length < 0)",
    tests,
  },
  {
    fault: "a home that has another key than the backup is restored into",
    file: "src/backup/restore.ts",
    search: "await checkKey(home);",
    replacement: "",
    tests,
  },
  {
    fault: "a restore that fails leaves what it has unpacked",
    file: "src/backup/restore.ts",
    search: "  } catch (error) {\n    await removeCutRestore(home);\n    throw error;",
    replacement: "  } catch (error) {\n    throw error;",
    tests,
  },
  {
    fault: "an entry that no backup has is unpacked into the home",
    file: "src/backup/restore.ts",
    search: "throw damaged(file, `it holds ${JSON.stringify(path)}, which no backup has`);",
    replacement: "return path;",
    tests,
  },
  {
    fault: "the database of a backup is restored damaged",
    file: "src/backup/restore.ts",
    search: "if (damage !== null) throw damaged(",
    replacement: 'if (damage === "") throw damaged(',
    tests,
  },
  {
    fault: "a program starts in a home whose restore was interrupted",
    file: "src/store/home.ts",
    search: "if (!isThere(join(home, RESTORING))) return;",
    replacement: "if (isThere(home)) return;",
    tests,
  },
  {
    fault: "`troupe backup` replaces a file without --force",
    file: "src/cli/backup.ts",
    search: 'if (call.flag("force") !== true && ',
    replacement: 'if (call.flag("force") === null && false && ',
    tests: ["test/integration/backup.test.ts"],
  },
  {
    fault: "`troupe backup` succeeds though files are missing from the home",
    file: "src/cli/backup.ts",
    search: "return missing.length + damaged.length === 0 ? exitCodes.success : exitCodes.failure;",
    replacement: "return exitCodes.success;",
    tests: ["test/integration/backup.test.ts"],
  },
  {
    fault: "nobody is told that a backup lacks the secret key",
    file: "src/cli/backup.ts",
    search: "if (!hasKey)",
    replacement: "if (hasKey)",
    tests: ["test/integration/backup.test.ts"],
  },
];
