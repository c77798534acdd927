// A strict reader of Prometheus's text format: it refuses what a scraper would trip over.

import assert from "node:assert/strict";

export class Scraped {
  readonly #types: ReadonlyMap<string, string>;
  readonly #series: ReadonlyMap<string, number>;

  constructor(text: string) {
    assert.ok(text.endsWith("\n"), "the last line has an end");
    const types = new Map<string, string>();
    const helped = new Set<string>();
    const series = new Map<string, number>();
    let family = "";
    for (const line of text.slice(0, -1).split("\n")) {
      const comment = /^# (HELP|TYPE) ([a-z_:][a-z0-9_:]*) (.+)$/.exec(line);
      if (comment !== null) {
        const [, kind, name = "", rest = ""] = comment;
        if (kind === "HELP") {
          assert.ok(!helped.has(name), `${name} is described once`);
          helped.add(name);
          family = name;
          continue;
        }
        assert.equal(name, family, "a type follows its help");
        assert.ok(!types.has(name), `${name} has one type`);
        types.set(name, rest);
        continue;
      }
      const sample = /^([a-z_:][a-z0-9_:]*)(\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*\})? (\S+)$/.exec(line);
      assert.ok(sample !== null, `a sample: ${line}`);
      const [, name = "", labels = "", value] = sample;
      assert.ok(name === family || name.startsWith(`${family}_`), `${name} stands with ${family}`);
      assert.ok(!series.has(name + labels), `${name}${labels} is given once`);
      assert.ok(Number.isFinite(Number(value)), line);
      series.set(name + labels, Number(value));
    }
    this.#types = types;
    this.#series = series;
    this.#checkHistograms();
  }

  /** The value of one series. @param labels as they stand, such as `{pool="default"}` */
  value(name: string, labels = ""): number {
    return this.#series.get(name + labels) ?? assert.fail(`there is no ${name}${labels}`);
  }

  /** All series of a name together. */
  sum(name: string): number {
    const values = [...this.#series].filter(([key]) => key === name || key.startsWith(`${name}{`));
    assert.ok(values.length > 0, `there is no ${name}`);
    return values.reduce((sum, [, value]) => sum + value, 0);
  }

  get names(): readonly string[] {
    return [...this.#types.keys()];
  }

  #checkHistograms(): void {
    for (const [name, type] of this.#types) {
      if (type !== "histogram") continue;
      const last = new Map<string, number>();
      for (const [key, value] of this.#series) {
        if (!key.startsWith(`${name}_bucket{`)) continue;
        const of = key.replace(/,?le="[^"]*"/, "");
        assert.ok(value >= (last.get(of) ?? 0), `${key} is cumulative`);
        last.set(of, value);
        if (!key.includes('le="+Inf"')) continue;
        const count = of.replace("_bucket", "_count").replace(/\{\}$/, "");
        assert.equal(value, this.value(count), `${key} is the count`);
      }
    }
  }
}
