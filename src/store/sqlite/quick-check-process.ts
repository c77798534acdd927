// Checks the database whose path is its argument; quick-check.ts is at the other end.

import { quickCheck } from "./quick-check.ts";

process.stdout.write(JSON.stringify(quickCheck(process.argv[2] ?? "")));
