import { asObject } from "./checks.js";
import type { Request, Store } from "./store.js";
import type * as t from "./types.js";

/** A conversation of a store. It holds only its store and its name: every method is a request. */
export class Conversation {
  /** The store. */
  readonly store: Store;
  /** The name, or the id, that this object was made with. */
  readonly name: string;

  constructor(store: Store, name: string) {
    this.store = store;
    this.name = name;
  }

  /** Performs a request about this conversation: `{ stats: true }`. */
  request<R = any>(request: Request): Promise<R> {
    return this.store.request<R>({ conversation: this.name, ...request });
  }

  /** `request` that blocks the thread. */
  requestSync<R = any>(request: Request): R {
    return this.store.requestSync<R>({ conversation: this.name, ...request });
  }

  // Changes

  /** Applies an operation, or a list of operations as one atomic request. */
  apply(operations: Operations, options: t.WriteOptions = {}): Promise<t.Outcome> {
    return this.request(applyRequest(operations, options));
  }

  /** `apply` that blocks the thread. */
  applySync(operations: Operations, options: t.WriteOptions = {}): t.Outcome {
    return this.requestSync(applyRequest(operations, options));
  }

  /** The outcome that `apply` would have. Nothing is stored. */
  preview(operations: Operations): Promise<t.Outcome> {
    return this.apply(operations, { dryRun: true });
  }

  /** Adds a message, or several, to the end of the view. */
  append(messages: t.Message | readonly t.Message[], options: ChangeOptions = {}): Promise<t.Outcome> {
    return this.#change({ operation: "APPEND", messages: list(messages) }, options);
  }

  /** Inserts messages at a position of the view. */
  insert(position: number, messages: t.Message | readonly t.Message[], options: ChangeOptions = {}): Promise<t.Outcome> {
    return this.#change({ operation: "INSERT", position, messages: list(messages) }, options);
  }

  /** Puts a message in the place of the entry at a position. The old entry stays in the log. */
  replace(position: number, message: t.Message, options: ChangeOptions = {}): Promise<t.Outcome> {
    return this.#change({ operation: "REPLACE", index: position, message }, options);
  }

  /** Hides log entries (DELETE). With `summary`, a message takes their place (COMPRESS). */
  async hide(indices: readonly number[], options: ChangeOptions & { summary?: t.Message } = {}): Promise<t.Outcome> {
    const { summary, ...rest } = asObject(options, "options");
    const operation: t.Operation =
      summary === undefined ? { operation: "DELETE", indices } : { operation: "COMPRESS", indices, summary };
    return this.#change(operation, rest);
  }

  /** Shows hidden log entries again. */
  restore(indices: readonly number[], options: ChangeOptions = {}): Promise<t.Outcome> {
    return this.#change({ operation: "RESTORE", indices }, options);
  }

  /** Makes the view exactly these log entries, in this order. */
  arrange(indices: readonly number[], options: ChangeOptions = {}): Promise<t.Outcome> {
    return this.#change({ operation: "ARRANGE", indices }, options);
  }

  /** Keeps a part of the view. */
  truncate(truncation: t.Truncation, options: ChangeOptions = {}): Promise<t.Outcome> {
    return this.#change({ operation: "TRUNCATE", ...truncation }, options);
  }

  /** Keeps the entries that satisfy all criteria. */
  filter(criteria: t.Criteria, options: ChangeOptions = {}): Promise<t.Outcome> {
    return this.#change({ operation: "FILTER", ...criteria }, options);
  }

  /** Empties the view. System messages stay unless `keepSystemMessage` is false. */
  async clear(options: ChangeOptions & { keepSystemMessage?: boolean; scope?: t.Scope } = {}): Promise<t.Outcome> {
    const { keepSystemMessage, scope, ...rest } = asObject(options, "options");
    return this.#change(given({ operation: "CLEAR", keepSystemMessage, scope }), rest);
  }

  /** Keeps the newest messages that fit a token budget (FIT). */
  async fit(maxTokens: number, options: ChangeOptions & { keepSystem?: boolean; startOn?: t.Role } = {}): Promise<t.Outcome> {
    const { keepSystem, startOn, ...rest } = asObject(options, "options");
    return this.#change(given({ operation: "FIT", maxTokens, keepSystem, startOn }), rest);
  }

  /** Sets a label on log entries. The mark `pinned`, which is the default, protects them. */
  mark(indices: readonly number[], mark = "pinned", options: ChangeOptions = {}): Promise<t.Outcome> {
    return this.#change({ operation: "MARK", indices, mark }, options);
  }

  /** Removes a label from log entries. */
  unmark(indices: readonly number[], mark = "pinned", options: ChangeOptions = {}): Promise<t.Outcome> {
    return this.#change({ operation: "UNMARK", indices, mark }, options);
  }

  /** Reverts the newest request that is not reverted. */
  undo(options: t.WriteOptions = {}): Promise<t.Outcome> {
    return this.apply({ operation: "UNDO" }, options);
  }

  /** Applies the request again that the newest UNDO reverted. */
  redo(options: t.WriteOptions = {}): Promise<t.Outcome> {
    return this.apply({ operation: "REDO" }, options);
  }

  /** Returns to the state of a version, or to a batch of the live path. */
  async rollback(target: { version: number } | { batch: number }, options: ChangeOptions = {}): Promise<t.Outcome> {
    const { version, batch } = asObject<{ version?: number; batch?: number }>(target, "target");
    return this.#change(given({ operation: "ROLLBACK", targetVersion: version, targetBatchIndex: batch }), options);
  }

  /** Sets the tools. An empty list means none. */
  setTools(tools: readonly t.Tool[], options: t.WriteOptions = {}): Promise<t.Outcome> {
    return this.request({ setTools: tools, ...options });
  }

  // Reads

  /** The messages of the view, as they were given. */
  async messages(options: At = {}): Promise<t.Message[]> {
    return (await this.entries(undefined, options)).map((entry) => entry.message);
  }

  /** The entries of the view, or the log entries with these indices. */
  async entries(indices?: readonly number[], options: At = {}): Promise<t.Entry[]> {
    const { at } = asObject(options, "options");
    return (await this.request({ show: indices ?? true, at })).messages;
  }

  /** The entries that a query selects: `query({ role: "user", last: 3 })`. */
  async query(query: t.Query): Promise<t.Entry[]> {
    return (await this.request({ ask: query })).messages;
  }

  /** The number of entries that a query selects. */
  async count(query: t.Query): Promise<number> {
    return (await this.request({ count: query })).count;
  }

  /** The newest version. */
  async version(): Promise<number> {
    return (await this.request({ log: { limit: 1 } })).versions[0].version;
  }

  /** Versions, newest first, at most `limit`. Default: 50. */
  async versions(options: { limit?: number; before?: number } = {}): Promise<t.VersionInfo[]> {
    return (await this.request({ log: options })).versions;
  }

  /** The statistics of the newest version: messages, batches and tokens. */
  stats(): Promise<t.Stats> {
    return this.request({ stats: true });
  }

  /** The statistics, marks, tools and warnings of the conversation. */
  info(): Promise<t.Info> {
    return this.request({ info: true });
  }

  /** The difference between two versions. */
  diff(from: number, to: number): Promise<t.Difference> {
    return this.request({ diff: { from, to } });
  }

  /** The versions that added, hid or restored a log entry, oldest first. */
  async blame(index: number): Promise<t.Blame[]> {
    return (await this.request({ blame: index })).history;
  }

  /** All marks with their entries. */
  async marks(options: At = {}): Promise<t.MarkedEntries[]> {
    const { at } = asObject(options, "options");
    return (await this.request({ marks: true, at })).marks;
  }

  /** The mark map of the contract. */
  async markMap(options: At & { scope?: t.Scope } = {}): Promise<t.MarkMap> {
    const { scope = "visible", at } = asObject(options, "options");
    return this.request({ markMap: { scope }, at });
  }

  /** The tools, as they were given. */
  async tools(options: At = {}): Promise<t.Tool[]> {
    const { at } = asObject(options, "options");
    return (await this.request({ tools: true, at })).tools;
  }

  /** Tokens by role and by tool, and the largest messages. */
  async tokens(options: At & { largest?: number } = {}): Promise<t.TokenShares> {
    const { largest, at } = asObject(options, "options");
    return this.request({ tokens: { largest }, at });
  }

  /** Compares the tokens of the view with the token limit and the threshold. */
  tokenCheck(): Promise<t.CheckedTokens> {
    return this.request({ tokenCheck: true });
  }

  /** The visible messages and the batch snapshots. */
  async state(options: At = {}): Promise<t.State> {
    const { at } = asObject(options, "options");
    return this.request({ state: true, at });
  }

  /** A batch of the live path. */
  snapshot(batch: number): Promise<t.BatchSnapshot> {
    return this.request({ snapshot: batch });
  }

  /** The view as a request to a provider, with repairs. */
  render(provider: t.Provider, options: At & ProviderOptions = {}): Promise<t.Rendered> {
    return this.request({ render: provider, ...options });
  }

  /** The rules of a provider that the view violates. */
  async lint(provider: t.Provider, options: At & ProviderOptions = {}): Promise<t.Finding[]> {
    return (await this.request({ lint: provider, ...options })).findings;
  }

  /** The view, or the whole log, as a transcript. */
  async export(format?: string, options: At & { scope?: t.Scope; lines?: boolean } = {}): Promise<t.Exported> {
    const { scope, lines, at } = asObject(options, "options");
    return this.request({ export: { format, scope, lines }, at });
  }

  // The conversation as a whole

  /** Creates a conversation that starts at a version of this one. It copies no messages. */
  async fork(name: string, options: At = {}): Promise<Conversation> {
    const { at } = asObject(options, "options");
    await this.request({ fork: { name, at } });
    return new Conversation(this.store, name);
  }

  /** Gives the conversation another name, and returns it under that name. */
  async rename(name: string): Promise<Conversation> {
    await this.request({ rename: name });
    return new Conversation(this.store, name);
  }

  /** Removes the conversation permanently. */
  async remove(options: { expectedVersion?: number } = {}): Promise<void> {
    await this.request({ remove: true, ...options });
  }

  /** The settings. */
  settings(): Promise<t.ConversationSettings> {
    return this.request({ settings: true });
  }

  /** Changes settings. `null` means none. */
  changeSettings(changes: t.SettingsChanges, options: { expectedVersion?: number; dryRun?: boolean } = {}): Promise<t.ConversationSettings> {
    return this.request({ settings: changes, ...options });
  }

  /** Overwrites the messages that no kept version shows. */
  prune(keep: t.Keep, options: { expectedVersion?: number; dryRun?: boolean } = {}): Promise<t.Pruned> {
    return this.request({ prune: keep, ...options });
  }

  /** Overwrites messages permanently, in every version and fork. */
  async erase(indices: readonly number[], options: { expectedVersion?: number } = {}): Promise<t.ErasedEntry[]> {
    return (await this.request({ erase: indices, ...options })).erased;
  }

  /** Checks everything that is stored of the conversation. */
  verify(): Promise<t.Verification> {
    return this.request({ verify: true });
  }

  async #change(operation: t.Operation, options: ChangeOptions): Promise<t.Outcome> {
    const { description, ...rest } = asObject(options, "options");
    return this.apply(description === undefined ? operation : { ...operation, description }, rest);
  }
}

/** An operation, or a list of them, in any of the three input forms. */
export type Operations = t.Operation | t.OlderForm | readonly (t.Operation | t.OlderForm)[];

/** Options of a change, with the description of its version. */
export interface ChangeOptions extends t.WriteOptions {
  /** Why the change is made. Default: generated from the operation. */
  description?: string;
}

/** The version that is read. Default: the newest. */
export interface At {
  at?: number;
}

/** The model, the version of the API and the other fields of a provider request. */
export interface ProviderOptions {
  /** The model. */
  model?: string;
  /** The version of the provider's API, such as `2026-10-21` at Anthropic. Default: the oldest. */
  apiVersion?: string;
  /** The other fields of the request, such as `thinking`. */
  fields?: Record<string, unknown>;
}

function applyRequest(operations: Operations, options: t.WriteOptions): Request {
  return Array.isArray(operations) ? { ops: operations, ...options } : { op: operations, ...options };
}

function list<T>(messages: T | readonly T[]): readonly T[] {
  return Array.isArray(messages) ? messages : [messages as T];
}

/** An operation with fields that may be undefined, which means that they are absent. */
function given(operation: Record<string, unknown>): t.Operation {
  return operation as t.Operation;
}
