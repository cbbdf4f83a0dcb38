// The step `node` of `cargo xtask test`: builds the package, and runs its tests.

import { execFileSync } from "node:child_process";

import { here, prepare, runTests, testFiles } from "./build-step.mjs";

prepare();
// docs/node-api.md is generated from the types.
execFileSync(process.execPath, ["reference.mjs", "--check"], { cwd: here, stdio: "inherit" });
if (!runTests(`Node ${process.versions.node}`, testFiles())) process.exitCode = 1;
