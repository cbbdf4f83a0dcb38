// Builds the package: the TypeScript files with tsc, the native library and the WebAssembly modules with cargo.
//
//   node build.mjs            an optimised library and optimised modules
//   node build.mjs --debug    cargo's profile `dev`
//   node build.mjs --debug --library PATH    with a native library that was built before
//
// The modules need a target of Rust: `rustup target add wasm32-unknown-unknown`. Without it everything else is
// built, and a message says so. With `--wasm`, its absence is a failure.

import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const isDebug = process.argv.includes("--debug");
const profile = isDebug ? "dev" : "dist";
const WASM = "wasm32-unknown-unknown";
const run = (program, args) =>
  execFileSync(program, args, { cwd: here, stdio: ["ignore", "pipe", "inherit"], maxBuffer: 1 << 30 }).toString();

const dist = join(here, "dist");
rmSync(dist, { recursive: true, force: true });
const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
// Without Node, modules are ESM only.
for (const project of ["tsconfig.json", "tsconfig.wasm.json"]) run(process.execPath, [tsc, "--project", project]);
writeFileSync(join(dist, "wasm", "package.json"), '{"type": "module"}\n');

const { nativeFile } = createRequire(import.meta.url)("./dist/native-file.js");
// A file that is mapped into another process must not be overwritten, so it is removed first.
const target = join(here, nativeFile());
rmSync(target, { force: true });
const given = process.argv.indexOf("--library");
copyFileSync(given > 0 ? process.argv[given + 1] : built("recto_node", ["--package", "recto-node"]), target);

if (hasTarget()) {
  const wasm = ["--package", "recto-wasm", "--target", WASM];
  copyFileSync(built("recto_wasm", wasm), join(dist, "wasm", "recto.wasm"));
  copyFileSync(built("recto_wasm", [...wasm, "--no-default-features"]), join(dist, "wasm", "approx.wasm"));
} else {
  console.error(`recto-context/wasm is not built: run \`rustup target add ${WASM}\` and build again`);
  if (process.argv.includes("--wasm")) process.exitCode = 1;
}

/** Builds a library, and returns its path. */
function built(name, args) {
  const printed = run("cargo", ["build", ...args, "--profile", profile, "--message-format", "json"]);
  const artifacts = printed.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  return artifacts.find((one) => one.reason === "compiler-artifact" && one.target.name === name).filenames[0];
}

function hasTarget() {
  const installed = run("rustc", ["--print", "target-libdir", "--target", WASM]).trim();
  return existsSync(installed);
}
