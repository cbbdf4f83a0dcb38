// The step `node frameworks` of `cargo xtask test frameworks`: node frameworks.mjs TARGET
//
// Runs all tests of the package with the other supported versions of Node, and the tests of the adapters with the
// lowest supported versions of the frameworks. TARGET is the target directory of cargo; everything that is installed
// is in its folder `node`.

import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { here, installNode, npm, prepare, runTests, testFiles } from "./build-step.mjs";

/** The supported versions of Node. The version that runs this file is left out: `check.mjs` tests it. */
const NODES = ["20", "22", "24"].filter((version) => version !== process.versions.node.split(".")[0]);

/** The lowest supported versions: those of `peerDependencies`, and versions of the same time that the tests need. */
const LOWEST = {
  "@langchain/core": "1.1.44",
  "@langchain/langgraph": "1.3.0",
  "@langchain/langgraph-checkpoint": "1.1.0",
  "@openai/agents-core": "0.16.1",
  ai: "6.0.0",
  ai7: "npm:ai@7.0.0",
  langchain: "1.0.1",
};

const target = resolve(process.argv[2] ?? join(here, "../target"), "node");
prepare();
const nodes = new Map(NODES.map((version) => [version, installNode(version, target)]));
let passed = true;
for (const [version, node] of nodes) passed = runTests(`Node ${version}`, testFiles(), { node }) && passed;
const lowest = installLowest();
const adapters = ["ai-sdk.test.mjs", "langchain.test.mjs", "langgraph.test.mjs", "langgraph-process.test.mjs", "openai-agents.test.mjs"];
// AI SDK 7 needs Node 22.
const node = nodes.get("22") ?? process.execPath;
passed = runTests("lowest versions of the frameworks", adapters, { node, cwd: lowest }) && passed;
process.exitCode = passed ? 0 : 1;

/** A copy of the built package and its tests, with the lowest versions of the frameworks. */
function installLowest() {
  const folder = join(target, "lowest");
  const manifest = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
  for (const [name, range] of Object.entries(manifest.peerDependencies)) {
    if (range !== `>=${LOWEST[name]}`) throw new Error(`package.json allows ${name} ${range}; ${LOWEST[name]} is tested`);
  }
  const devDependencies = { ...manifest.devDependencies, ...LOWEST };
  const { "@langchain/core": core, "@langchain/langgraph": langgraph, "@langchain/langgraph-checkpoint": checkpoint } = LOWEST;
  const overrides = { "@langchain/core": core, "@langchain/langgraph": langgraph, "@langchain/langgraph-checkpoint": checkpoint };
  const wanted = { ...manifest, devDependencies, overrides };
  const before = existsSync(join(folder, "package.json")) ? readFileSync(join(folder, "package.json"), "utf8") : "";
  if (before !== text(wanted) || !existsSync(join(folder, "node_modules/.package-lock.json"))) {
    rmSync(folder, { recursive: true, force: true });
    write(folder, wanted);
    npm(["install"], folder);
  }
  for (const name of ["dist", "test", "vitest.config.mjs"]) {
    rmSync(join(folder, name), { recursive: true, force: true });
    cpSync(join(here, name), join(folder, name), { recursive: true });
  }
  cpSync(here, folder, { recursive: true, filter: (path) => path === here || /\.node$/.test(path) });
  return folder;
}

function text(manifest) {
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

function write(folder, manifest) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), text(manifest));
}
