// Agents of each framework with its own means and with Recto: node bench/frameworks.mjs TARGET PROVIDER
//
// `cargo xtask compare frameworks` runs it. TARGET is the target directory of cargo, PROVIDER the program
// `scripted_provider` of the crate `testserver`. Each variant runs in a process of its own, which prints one line of
// JSON; the last line of the output is the list of them.

import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import { here, installNode, npm } from "../build-step.mjs";
import { CALLS, Scenario, WINDOW } from "./scenario.mjs";

/** The clients of the provider. The frameworks are those that the tests use. */
const CLIENTS = {
  "@langchain/openai": "1.6.0",
  "@openai/agents-core": "0.20.0",
  "@openai/agents-openai": "0.20.0",
  compatible6: "npm:@ai-sdk/openai-compatible@2.0.87",
  compatible7: "npm:@ai-sdk/openai-compatible@3.0.92",
};
const EXPORTS = `export { ChatOpenAI } from "@langchain/openai";
export * as agents from "@openai/agents-core";
export * as agentsOpenai from "@openai/agents-openai";
export { OpenAI } from "openai";
export * as compatible6 from "compatible6";
export * as compatible7 from "compatible7";
`;
/** Version 7 of the AI SDK and the client of OpenAI need it. */
const NODE = "22";

if (process.argv[2] === "--run") console.log(JSON.stringify(await run(...process.argv.slice(3))));
else await main(resolve(process.argv[2]), process.argv[3]);

async function frameworks() {
  const { aiSdk } = await import("./frameworks-ai-sdk.mjs");
  const { openaiAgents } = await import("./frameworks-openai-agents.mjs");
  const { langchain } = await import("./frameworks-langchain.mjs");
  return [aiSdk(6), aiSdk(7), openaiAgents, langchain];
}

async function main(target, provider) {
  await import("./build.mjs");
  const clients = installed(join(target, "node", "compare"));
  const isNew = Number(process.versions.node.split(".")[0]) >= Number(NODE);
  const node = isNew ? process.execPath : installNode(NODE, join(target, "node"));
  const server = spawn(provider, [String(CALLS), String(WINDOW)], { stdio: ["pipe", "pipe", "inherit"] });
  const url = await new Promise((found) => server.stdout.once("data", (line) => found(line.toString().trim())));
  const rows = [];
  for (const [at, { name, variants }] of (await frameworks()).entries()) {
    for (const [number, variant] of variants.entries()) {
      const args = ["--no-warnings", fileURLToPath(import.meta.url), "--run", name, variant, `${url}/${at}-${number}`, clients];
      const printed = execFileSync(node, args, { stdio: ["ignore", "pipe", "inherit"] }).toString();
      rows.push(JSON.parse(printed.trimEnd().split("\n").at(-1)));
    }
  }
  server.stdin.end();
  console.log(JSON.stringify(rows));
}

async function run(name, variant, url, clients) {
  const framework = (await frameworks()).find((one) => one.name === name);
  const scenario = new Scenario(url);
  const folder = mkdtempSync(join(tmpdir(), "recto-"));
  const left = await framework.run(variant, scenario, folder, await import(pathToFileURL(clients).href));
  const row = await scenario.row(left, folder);
  rmSync(folder, { recursive: true });
  return { framework: name, variant, ...row };
}

/** Installs the clients. They use the frameworks of this package. Returns a module that exports them. */
function installed(folder) {
  const place = join(folder, "clients");
  const manifest = `${JSON.stringify({ name: "clients", private: true, type: "module", dependencies: CLIENTS }, null, 2)}\n`;
  const file = join(place, "package.json");
  const stamp = join(place, "node_modules", ".package-lock.json");
  if (!existsSync(stamp) || !existsSync(file) || readFileSync(file, "utf8") !== manifest) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(place, { recursive: true });
    writeFileSync(file, manifest);
    // Peers, such as @langchain/core, are found in the folder above.
    symlinkSync(join(here, "node_modules"), join(folder, "node_modules"));
    npm(["install", "--legacy-peer-deps"], place);
  }
  writeFileSync(join(place, "clients.js"), EXPORTS);
  return join(place, "clients.js");
}
