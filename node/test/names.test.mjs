// Names of conversations that are made of ids. They are those of the Python package.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import { namePart } from "../dist/names.js";

const hash = (bytes) => `%%${createHash("sha256").update(Buffer.from(bytes, "latin1")).digest("hex")}`;

test("the names are those of the Python package", () => {
  // The same list as in python/tests/test_names.py.
  const texts = ["a:b@c", "a/b%", "\n\x85", "用户 42", "\u2028"];
  assert.deepEqual(texts.map(namePart), ["a:b@c", "a%2Fb%25", "%0A%C2%85", "用户 42", "\u2028"]);
  assert.equal(namePart("x".repeat(121)), hash("x\0".repeat(121)));
  assert.equal(namePart("\ud800"), hash("\x00\xd8"));
  assert.equal(namePart("👍"), "👍");
});
