// Builds the package with the profile `dist`, unless the command has `--built`. A bench imports this file first.

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

import { here, npm } from "../build-step.mjs";

if (!existsSync(join(here, "node_modules"))) npm(["ci"], here);
if (!process.argv.includes("--built")) {
  // Its output is for people, and standard output has the figures.
  execFileSync(process.execPath, ["build.mjs"], { cwd: here, stdio: ["ignore", 2, "inherit"] });
}
