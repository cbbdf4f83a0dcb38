// Builds the package: the native library with cargo, then the TypeScript files with tsc.
//
//   node build.mjs            an optimised library
//   node build.mjs --debug    the library of cargo's profile `dev`
//   node build.mjs --library PATH    a library that was built before

import { execFileSync } from "node:child_process";
import { copyFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const run = (program, args) =>
  execFileSync(program, args, { cwd: here, stdio: ["ignore", "pipe", "inherit"], maxBuffer: 1 << 30 }).toString();

rmSync(join(here, "dist"), { recursive: true, force: true });
process.stdout.write(run(process.execPath, [createRequire(import.meta.url).resolve("typescript/bin/tsc")]));

const { nativeFile } = createRequire(import.meta.url)("./dist/native-file.js");
// A file that is mapped into another process must not be overwritten, so it is removed first.
const target = join(here, nativeFile());
rmSync(target, { force: true });
copyFileSync(library(), target);

function library() {
  const given = process.argv.indexOf("--library");
  if (given > 0) return process.argv[given + 1];
  const profile = process.argv.includes("--debug") ? "dev" : "dist";
  const args = ["build", "--package", "recto-node", "--profile", profile, "--message-format", "json"];
  const artifacts = run("cargo", args).split("\n").filter(Boolean).map((line) => JSON.parse(line));
  const built = artifacts.find((one) => one.reason === "compiler-artifact" && one.target.name === "recto_node");
  return built.filenames[0];
}
