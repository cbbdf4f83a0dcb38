// Calls into the native library: an empty call, an APPEND, and memory. `bindings.mjs` runs it with `--expose-gc`.

import { createRequire } from "node:module";

import { Store } from "recto-context";

const { native } = createRequire(import.meta.url)("../dist/native.js");
const CALLS = 100_000;
const TEXT = Array.from({ length: 20 }, (_, n) => `line ${String(n).padStart(3, "0")} of the log. `).join("").slice(0, 320);

/** The processor time of one call in seconds, in the fastest of many short rounds. */
function fastest(count, work, rounds = 40) {
  let least = Infinity;
  for (let round = 0; round < rounds; round++) {
    const start = process.cpuUsage();
    work(count);
    const { user, system } = process.cpuUsage(start);
    least = Math.min(least, (user + system) / 1e6 / count);
  }
  return least;
}

const store = Store.openSync("memory:");
const opened = native.NativeStore.openSync("memory:", {});
let seen = 0;
// Every request of a program is a call of a method of an open store, so the empty call is one too. The Python package
// measures `is_closed`. A function without an object would be faster, and no request is one.
const empty = fastest(100_000, (count) => {
  for (let call = 0; call < count; call++) if (opened.closed) seen++;
});

function append(counter) {
  const conversation = store.conversation(counter);
  store.requestSync({ create: counter, settings: { counter } });
  return fastest(500, (count) => {
    for (let call = 0; call < count; call++) {
      conversation.applySync({ operation: "APPEND", messages: [{ role: "user", content: TEXT }] });
    }
  });
}

/** Growth of resident memory in bytes: the minimum of several rounds, because a leak shows in every round. */
function growth() {
  store.requestSync({ create: "memory", settings: { counter: "approx" }, messages: [{ role: "user", content: TEXT }] });
  const conversation = store.conversation("memory");
  const resident = () => (gc(), process.memoryUsage.rss());
  let least = Infinity;
  for (let round = 0; round < 4; round++) {
    const before = resident();
    for (let call = 0; call < CALLS; call++) conversation.requestSync({ stats: true });
    least = Math.min(least, resident() - before);
  }
  return Math.max(least, 0);
}

const us = 1e-6;
const rows = [
  { name: "an empty call: the getter `closed` of an open store", value: empty, unit: "s", limit: 150e-9 },
  { name: "APPEND of 320 bytes, memory:, o200k_base", value: append("o200k_base"), unit: "s", limit: 25 * us },
  { name: "APPEND of 320 bytes, memory:, approx", value: append("approx"), unit: "s", limit: 25 * us },
  { name: `memory that ${CALLS.toLocaleString("en")} calls leave`, value: growth(), unit: "B", limit: 2 << 20 },
];
console.log(JSON.stringify(rows));
if (seen > 0) throw new Error("the store was closed");
