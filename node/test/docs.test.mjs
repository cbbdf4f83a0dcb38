// The examples of the documentation, run as they are.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

for (const page of ["README.md", "../README.md", "../docs/node.md", "../docs/typescript-seeds.md"]) {
  const text = readFileSync(join(root, page), "utf8");
  const examples = [...text.matchAll(/^```js\n(.*?)^```$/gms)].map((found) => found[1]);
  for (const [at, example] of examples.entries()) {
    test(`example ${at + 1} of ${page} runs`, () => {
      const place = mkdtempSync(join(tmpdir(), "recto-"));
      mkdirSync(join(place, "node_modules"));
      symlinkSync(root, join(place, "node_modules", "recto-context"));
      writeFileSync(join(place, "example.mjs"), example);
      execFileSync(process.execPath, ["example.mjs"], { cwd: place, stdio: ["ignore", "pipe", "pipe"] });
      rmSync(place, { recursive: true });
    });
  }
}
