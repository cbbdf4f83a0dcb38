/**
 * Recto in WebAssembly, for browsers and edge runtimes: fits, repairs and counts lists of messages, without a
 * store and without Node.
 *
 * ```js
 * import { load } from "recto-context/wasm";
 *
 * const recto = await load();
 * const { messages } = recto.fit(history, 100_000, { format: "openai-chat", repairFor: "openai-chat" });
 * ```
 */
import { listsOver, type Lists } from "../lists.js";

export { BudgetTooSmall, InvalidRequest, RectoError } from "../errors.js";
export type { Fitted, FitOptions, ListOptions, ListRepair, Lists, RepairOptions } from "../lists.js";

/** Where the module is: its address, a response with it, its bytes, or the compiled module. */
export type ModuleSource = string | URL | Response | BufferSource | WebAssembly.Module;

/** The functions that the module exports (`node/wasm/lib.rs`). */
interface Exports {
  memory: WebAssembly.Memory;
  recto_input(length: number): number;
  recto_compute(): number;
  recto_output(): number;
}

/**
 * Loads the module. Without a source it is the file `recto.wasm` of this package. `recto-context/wasm/approx.wasm`
 * is a smaller module without the exact counters: pass `counter: "approx"` to its functions.
 */
export async function load(source: ModuleSource = new URL("../recto.wasm", import.meta.url)): Promise<Lists> {
  const module = await compiled(source);
  const instance = await WebAssembly.instantiate(module, {});
  const exports = instance.exports as unknown as Exports;
  return listsOver((request) => compute(exports, request));
}

async function compiled(source: ModuleSource): Promise<WebAssembly.Module> {
  if (source instanceof WebAssembly.Module) return source;
  if (typeof source === "string" || source instanceof URL) {
    const url = new URL(source);
    // Node's `fetch` does not support file URLs.
    if (url.protocol === "file:") {
      // Not a literal: a bundler for browsers refuses the names of modules that only Node has.
      const module = "node:fs/promises";
      const { readFile }: typeof import("node:fs/promises") = await import(/* webpackIgnore: true */ /* @vite-ignore */ module);
      return WebAssembly.compile(new Uint8Array(await readFile(url)));
    }
    return compiled(await fetch(url));
  }
  if (!(source instanceof Response)) return WebAssembly.compile(source);
  if (!source.ok) throw new Error(`the module cannot be loaded from ${source.url}: status ${source.status}`);
  // `compileStreaming` would need a media type that some servers do not send.
  return WebAssembly.compile(await source.arrayBuffer());
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function compute(exports: Exports, request: string): string {
  const bytes = encoder.encode(request);
  const input = exports.recto_input(bytes.length);
  // `recto_input` may have grown the memory, which replaces its buffer.
  new Uint8Array(exports.memory.buffer).set(bytes, input);
  const length = exports.recto_compute();
  return decoder.decode(new Uint8Array(exports.memory.buffer, exports.recto_output(), length));
}
