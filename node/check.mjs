// The step `node` of `cargo xtask test`: builds the package, runs its tests, and prints their number as
// cargo prints it.

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const maxBuffer = 1 << 30;

installed();
targetAdded();
execFileSync(process.execPath, ["build.mjs", "--debug", "--library", library()], { cwd: here, stdio: "inherit" });
tested();

/** Installs the pinned versions of package-lock.json, unless they are there. */
function installed() {
  const stamp = join(here, "node_modules", ".package-lock.json");
  const lock = join(here, "package-lock.json");
  if (existsSync(stamp) && statSync(stamp).mtimeMs >= statSync(lock).mtimeMs) return;
  execFileSync("npm", ["ci", "--no-audit", "--no-fund", "--prefer-offline"], { cwd: here, stdio: "inherit" });
}

/** Adds the Rust target of the WebAssembly module. If that fails, build.mjs says so and its tests are skipped. */
function targetAdded() {
  spawnSync("rustup", ["target", "add", "wasm32-unknown-unknown"], { cwd: here, stdio: "inherit" });
}

/**
 * The native library. It is built together with the tests of the workspace, because cargo would otherwise
 * compile its dependencies once more, with other features.
 */
function library() {
  const options = ["--workspace", "--all-features", "--lib", "--tests", "--message-format", "json"];
  const stdio = ["ignore", "pipe", "inherit"];
  const printed = execFileSync("cargo", ["build", "--quiet", ...options], { cwd: here, stdio, maxBuffer }).toString();
  const line = printed.split("\n").find((one) => one.includes('"recto_node"') && one.includes("compiler-artifact"));
  return JSON.parse(line).filenames[0];
}

function tested() {
  const files = readdirSync(join(here, "test")).filter((file) => file.endsWith(".test.mjs"));
  const args = ["--test", "--test-reporter", "tap", ...files.map((file) => join("test", file))];
  const { stdout, status } = spawnSync(process.execPath, args, { cwd: here, maxBuffer });
  const tap = stdout.toString();
  const count = (word) => Number(new RegExp(`^# ${word} (\\d+)$`, "m").exec(tap)?.[1] ?? 0);
  if (status !== 0) console.log(tap);
  const verdict = status === 0 ? "ok" : "FAILED";
  const ignored = count("skipped");
  console.log(`test result: ${verdict}. ${count("pass")} passed; ${count("fail")} failed; ${ignored} ignored; 0 measured`);
  process.exitCode = status === 0 ? 0 : 1;
}
