// A bundle's files from memory, such as those of a request.

import { nameProblem } from "./layout.ts";
import { ProblemList } from "./problem.ts";
import { type BundleSource, writeFileOnce } from "./snapshot-files.ts";

/** Scripts are executable: they begin so. */
const SHEBANG = "#!";

/** @param files by relative path with `/`, without `.` and `..` */
export function memorySource(files: ReadonlyMap<string, Buffer>): BundleSource {
  const problems = new ProblemList();
  for (const path of files.keys()) {
    const problem = nameProblem(path) ?? placeProblem(path, files);
    if (problem !== null) problems.add(path, "invalid_name", problem);
  }
  return {
    files: [...files].map(([path, bytes]) => ({
      path,
      isExecutable: bytes.toString("latin1", 0, SHEBANG.length) === SHEBANG,
      sizeBytes: bytes.length,
    })),
    problems: problems.all(),
    write: (file, target) =>
      writeFileOnce(target, [files.get(file.path) ?? Buffer.alloc(0)], file.isExecutable),
    close: async () => {},
  };
}

function placeProblem(path: string, files: ReadonlyMap<string, Buffer>): string | null {
  const parts = path.split("/");
  if (parts.some((part) => part === "" || part === "." || part === "..") || path.includes("\\"))
    return "must be a relative path with /, without . and ..";
  const isBelowFile = parts.some((_, i) => i > 0 && files.has(parts.slice(0, i).join("/")));
  return isBelowFile ? "lies in a file" : null;
}
