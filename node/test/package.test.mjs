// The packed package, installed into an empty folder, and its types.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const place = mkdtempSync(join(tmpdir(), "recto-"));
after(() => rmSync(place, { recursive: true, force: true }));
const run = (program, args, cwd) => {
  try {
    return execFileSync(program, args, { cwd, stdio: ["ignore", "pipe", "pipe"] }).toString();
  } catch (error) {
    throw new Error(`${program} ${args.join(" ")}\n${error.stdout}${error.stderr}`);
  }
};
const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");

const hasModule = existsSync(join(root, "dist/wasm/recto.wasm"));
const USE = `
  const hasModule = ${hasModule};
  const store = await Store.open("sqlite:talks.db");
  const talk = await store.create("talk", { counter: "approx" });
  await talk.append({ role: "user", content: "hi" });
  const manager = new MessageArrayManagerImpl([{ role: "user", content: "x" }]);
  manager.execute({ operation: "CLEAR", keepSystemMessage: false });
  const { load } = await import("recto-context/wasm").catch(() => ({}));
  const counted = hasModule ? (await load()).countTokens("hello world") : 2;
  console.log((await talk.messages()).length, manager.rollback(0).state.messages.length, counted);
  store.close();`;
const CJS = `
  const { Store } = require("recto-context");
  const { MessageArrayManagerImpl } = require("recto-context/message-array");
  (async () => {${USE}})();`;
const ESM = `
  import { createRequire } from "node:module";
  import * as recto from "recto-context";
  import * as seeds from "recto-context/message-array";
  const { Store, RectoError } = recto;
  const { MessageArrayManagerImpl } = seeds;
  const require = createRequire(import.meta.url);
  // Both forms are one module, with the same names and classes.
  if (require("recto-context").RectoError !== RectoError) throw new Error("two classes RectoError");
  for (const [one, name] of [[recto, "recto-context"], [seeds, "recto-context/message-array"]]) {
    const missing = Object.keys(require(name)).filter((key) => !(key in one));
    if (missing.length) throw new Error("not exported: " + missing);
  }
  ${USE}`;

test("the packed package works in an empty folder", () => {
  const [packed] = JSON.parse(run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", place], root));
  const files = packed.files.map((file) => file.path);
  assert(files.every((path) => /^(dist\/|recto\.[\w-]+\.node$|package\.json$|README\.md$)/.test(path)), files.join(" "));
  assert(files.some((path) => path.endsWith(".node")));
  const folder = join(place, "app");
  mkdirSync(folder);
  writeFileSync(join(folder, "package.json"), '{"name": "app", "private": true}');
  run("npm", ["install", "--offline", "--no-audit", "--no-fund", join(place, packed.filename)], folder);
  writeFileSync(join(folder, "use.cjs"), CJS);
  assert.equal(run(process.execPath, ["use.cjs"], folder), "1 1 2\n");
  rmSync(join(folder, "talks.db"));
  writeFileSync(join(folder, "use.mjs"), ESM);
  assert.equal(run(process.execPath, ["use.mjs"], folder), "1 1 2\n");
});

const CHECKED = ["test/types/store.ts", "test/types/message-array.ts"];
const STRICT = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--target", "es2022", "--types", "node"];

// The types of Node are checked once.
const BUNDLER = ["--module", "esnext", "--moduleResolution", "bundler", "--skipLibCheck"];
for (const options of [["--module", "nodenext"], BUNDLER]) {
  test(`programs in TypeScript are checked with ${options.join(" ")}`, () => {
    run(process.execPath, [tsc, ...STRICT, ...options, ...CHECKED], root);
  });
}
