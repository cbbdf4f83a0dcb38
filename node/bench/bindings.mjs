// Measures the package: node bench/bindings.mjs [--built]. `cargo xtask bench bindings` runs it.
//
// Builds the package with the profile `dist`, unless `--built` is given, and prints a table: calls into the native
// library (calls.mjs), and the algorithm of the seeds, compared with this one (seeds.mjs). A missed limit is a failure.

import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";

import "./build.mjs";
import { here as root } from "../build-step.mjs";

const MESSAGES = 10_000;
/** Minimum speed-up of an edit over the algorithm of the seeds. */
const MIN_RATIO = 100;
const EDITS = ["INSERT", "REPLACE", "TRUNCATE", "FILTER", "ROLLBACK"];

const measured = (file, ...options) =>
  JSON.parse(execFileSync(process.execPath, [...options, join(root, "bench", file), String(MESSAGES), "--json"], { cwd: root }));

const rows = sizes();
for (const { name, value, unit, limit } of measured("calls.mjs", "--expose-gc")) {
  rows.push([name, amount(value, unit), "", "", `< ${amount(limit, unit)}`, value < limit]);
}
for (const { operation, snapshots, recto, ratio } of measured("seeds.mjs").rows) {
  const isLimited = EDITS.includes(operation);
  const name = `${operation} in ${MESSAGES.toLocaleString("en")} messages`;
  const limit = isLimited ? `≥ ${MIN_RATIO} ×` : "";
  const times = [amount(recto / 1e6, "s"), `seeds' algorithm ${amount(snapshots / 1e6, "s")}`];
  rows.push([name, ...times, `${ratio.toPrecision(3)} ×`, limit, isLimited ? ratio >= MIN_RATIO : undefined]);
}
print(rows);
const limits = rows.map((row) => row.at(-1)).filter((met) => met !== undefined);
const missed = limits.filter((met) => !met).length;
if (missed > 0) {
  console.log(`missed: ${missed} of ${limits.length} limits`);
  process.exitCode = 1;
}

/** The sizes of what is published. */
function sizes() {
  const files = readdirSync(root).filter((file) => file.endsWith(".node"));
  const modules = ["recto.wasm", "approx.wasm"].map((file) => join("dist/wasm", file));
  const found = [...files, ...modules].filter((file) => existsSync(join(root, file)));
  return found.map((file) => [file, amount(statSync(join(root, file)).size, "B"), "", "", "", undefined]);
}

/** A number with its unit: `12.3 µs`, `4.5 MB`. */
function amount(value, unit) {
  const scales = { s: [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]], B: [[1e6, "MB"], [1e3, "KB"], [1, "B"]] };
  const [scale, name] = scales[unit].find(([scale]) => value >= scale) ?? scales[unit].at(-1);
  return `${Number((value / scale).toPrecision(3))} ${name}`;
}

/** Prints the rows as a table in Markdown. */
function print(rows) {
  const mark = (met) => (met === undefined ? "" : met ? "ok" : "MISSED");
  const lines = [["", "Recto", "compared with", "ratio", "limit", ""], ...rows.map((row) => [...row.slice(0, -1), mark(row.at(-1))])];
  const widths = lines[0].map((_, at) => Math.max(...lines.map((line) => line[at].length)));
  const written = lines.map((line) => `| ${line.map((cell, at) => cell.padEnd(widths[at])).join(" | ")} |`);
  written.splice(1, 0, `|${widths.map((width) => "-".repeat(width + 2)).join("|")}|`);
  console.log(written.join("\n"));
}
