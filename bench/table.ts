// A plain table of figures: one row a measurement, one column a server.

export function printTable(
  columns: readonly { readonly name: string; readonly figures: ReadonlyMap<string, string> }[],
): void {
  const names = [...new Set(columns.flatMap(({ figures }) => [...figures.keys()]))];
  const rows = [
    ["measurement", ...columns.map(({ name }) => name)],
    ...names.map((name) => [name, ...columns.map(({ figures }) => figures.get(name) ?? "")]),
  ];
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)));
  for (const [i, row] of rows.entries()) {
    console.log(`| ${row.map((cell, k) => cell.padEnd(widths[k]!)).join(" | ")} |`);
    if (i === 0) console.log(`| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`);
  }
}
