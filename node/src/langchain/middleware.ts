import type { BaseMessage, StoredMessage } from "@langchain/core/messages";
import type { AgentMiddleware } from "langchain";

import { asList, asObjectWith, asText, checkBudget } from "../checks.js";
import type { Conversation } from "../conversation.js";
import { BudgetTooSmall, InvalidRequest, VersionConflict } from "../errors.js";
import type { BudgetOptions } from "../growing-list.js";
import type { Fitted, ListRepair } from "../lists.js";
import { repair } from "../lists-native.js";
import { conversationName } from "../names.js";
import type { Store } from "../store.js";
import type { Entry, Message, Operation, Provider } from "../types.js";
import { isRecorded, knownOf, plainDict, record, restored, type Known } from "./records.js";

export interface ContextOptions extends BudgetOptions {
  /** The provider whose rules requests must follow. Default: `openai-chat`. */
  provider?: Provider;
  /** The start of the names of conversations. Default: `langchain/`. */
  prefix?: string;
  /** Receives a report of each model call. */
  onReport?: (report: ContextReport) => void;
}

/** What was done for one model call. */
export interface ContextReport {
  threadId: string;
  /** The version of the conversation that the model reads. */
  version: number;
  /** Messages and tokens of the request, without what repairs add and without the system prompt. */
  messages: number;
  tokens: number;
  /** Messages that this call hid, because the view was over budget. */
  hidden: number;
  repairs: ListRepair[];
  /** Whether the view is over budget and was not cut, because a cut was undone. */
  paused: boolean;
}

/** Maximum attempts after version conflicts. */
const MAX_ATTEMPTS = 100;
/** Number of threads whose log indices stay in memory. */
const MAX_THREADS = 1024;

/** The mark of messages that were hidden because they left the state. One that returns is a new message. */
const REMOVED = "removed from the state";

/** The request of a model call, as far as this package reads it. */
interface ModelRequest {
  messages: BaseMessage[];
  runtime: { configurable?: { thread_id?: string } };
}

/** State of the conversation of a thread. */
interface Thread {
  conversation: Conversation;
  /** The newest log entry of each message id. */
  entries: Map<string, Known>;
  /** The newest version that this process has made or seen. */
  version: number;
  isPaused: boolean;
  /** The last model call of the thread: calls of one thread run one after the other. */
  last: Promise<unknown>;
}

/** The functions of the framework, which is loaded when it is needed. */
interface Framework {
  createMiddleware(config: object): unknown;
  restore(message: StoredMessage): BaseMessage;
  /** The configuration of the run that the caller is part of. */
  runConfig(): { configurable?: { thread_id?: string } } | undefined;
}

/** A middleware with the conversations of its threads. */
export async function rectoMiddleware(store: Store, options: ContextOptions): Promise<RectoContext> {
  asObjectWith(store, "store", "a store", "request");
  checkBudget(options);
  const [{ createMiddleware }, messages, singletons] = await frameworkModules();
  const restore = messages.mapStoredMessageToChatMessage as unknown as Framework["restore"];
  const runConfig = () => singletons.AsyncLocalStorageProviderSingleton.getRunnableConfig();
  return new RectoContext(store, options, {
    createMiddleware: createMiddleware as Framework["createMiddleware"],
    restore,
    runConfig,
  });
}

/** The modules of the framework, which is an optional dependency. */
async function frameworkModules() {
  try {
    return await Promise.all([
      import("langchain"),
      import("@langchain/core/messages"),
      import("@langchain/core/singletons"),
    ]);
  } catch (error) {
    const message = 'recto-context/langchain needs the package "langchain": run `npm install langchain @langchain/core`';
    throw new Error(message, { cause: error });
  }
}

/**
 * Changes the request of each model call so that it fits the budget and is valid for the provider. The state of the agent is
 * not changed. A conversation records each message and each cut, so that a cut can be read, explained and undone.
 *
 * A cut that is undone by hand is not repeated: the thread is paused until `resume`.
 */
export class RectoContext {
  /** The middleware for `createAgent`. */
  readonly middleware: AgentMiddleware;
  readonly store: Store;
  readonly #options: ContextOptions;
  readonly #restore: Framework["restore"];
  readonly #threads = new Map<string, Promise<Thread>>();

  /** @internal `rectoMiddleware` makes it. */
  constructor(store: Store, options: ContextOptions, framework: Framework) {
    this.store = store;
    this.#options = options;
    this.#restore = framework.restore;
    this.middleware = framework.createMiddleware({
      name: "RectoContext",
      wrapModelCall: async (request: ModelRequest, handler: (request: ModelRequest) => unknown) => {
        // LangChain 1.0 passes no configuration to a middleware.
        const { configurable } = request.runtime.configurable ? request.runtime : (framework.runConfig() ?? {});
        const messages = await this.shape(configurable?.thread_id ?? "", request.messages);
        return handler({ ...request, messages });
      },
    }) as AgentMiddleware;
  }

  /** The conversation of a thread. */
  conversation(threadId: string): Conversation {
    return this.store.conversation(this.#name(threadId));
  }

  /** Cuts the thread again after a cut was undone. */
  async resume(threadId: string): Promise<void> {
    const thread = await this.#threads.get(threadId);
    if (thread) thread.isPaused = false;
  }

  /** The messages that the model reads: those of the list, and results that a repair made. */
  async shape(threadId: string, messages: readonly BaseMessage[]): Promise<BaseMessage[]> {
    asList(messages, "messages").forEach((message, at) =>
      asObjectWith(message, `messages[${at}]`, "a message of LangChain", "getType", "toDict"),
    );
    const thread = await this.#thread(asText(threadId, "threadId"));
    const shaped = thread.last.then(() => this.#shape(threadId, thread, messages));
    thread.last = shaped.catch(() => undefined);
    return shaped;
  }

  async #shape(threadId: string, thread: Thread, messages: readonly BaseMessage[]): Promise<BaseMessage[]> {
    const given = new Map(messages.map((message, at) => [message.id ?? `position ${at}`, message] as const));
    const { hidden, tokens } = await this.#record(thread, given);
    const { version, originalIndices } = await this.#view(thread);
    const ids = new Map([...thread.entries].map(([id, { index }]) => [index, id] as const));
    // An entry that is not in the state of the agent, such as a summary, becomes a new message.
    const view = await Promise.all(
      originalIndices.map(async (index) => given.get(ids.get(index) ?? "") ?? this.#messageOfEntry(thread, index)),
    );
    const { maxTokens, onReport } = this.#options;
    const fixed = this.#repaired(view);
    const report = { threadId, version, messages: view.length, tokens, hidden, repairs: fixed.repairs };
    onReport?.({ ...report, paused: thread.isPaused && tokens > maxTokens });
    return fixed.messages.map((message, at) => {
      const position = fixed.positions[at];
      return position === undefined ? this.#restore(message) : view[position]!;
    });
  }

  #repaired(view: readonly BaseMessage[]): Fitted<StoredMessage> {
    const { provider = "openai-chat", counter } = this.#options;
    const options = { format: "langchain", ...(counter && { counter }) };
    try {
      return repair(view.map((message) => message.toDict()), provider, options);
    } catch (error) {
      // A field such as `artifact` is not JSON.
      if (!(error instanceof InvalidRequest)) throw error;
      return repair(view.map(plainDict), provider, options);
    }
  }

  /** Adds new messages to the conversation, hides those that left the state, and cuts the view if it is over budget. */
  async #record(thread: Thread, given: Map<string, BaseMessage>): Promise<{ hidden: number; tokens: number }> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#loadOthersChanges(thread);
        await this.#add(thread, given);
        return await this.#cut(thread);
      } catch (error) {
        if (!(error instanceof VersionConflict) || attempt === MAX_ATTEMPTS) throw error;
      }
    }
  }

  async #add(thread: Thread, given: Map<string, BaseMessage>): Promise<void> {
    const added: [string, Message][] = [];
    const replaced: [string, Message][] = [];
    for (const [id, message] of given) {
      const known = thread.entries.get(id);
      if (known === undefined) added.push([id, record(message, id)]);
      else if (!isRecorded(known, message, id)) replaced.push([id, record(message, id)]);
    }
    const gone = [...thread.entries].filter(([id]) => !given.has(id));
    if (added.length + replaced.length + gone.length === 0) return;
    const visible = new Set((await this.#view(thread)).originalIndices);
    const operations: Operation[] = [];
    const indices = gone.map(([, { index }]) => index).filter((index) => visible.has(index));
    if (indices.length > 0) {
      operations.push({ operation: "DELETE", indices, description: REMOVED }, { operation: "MARK", indices, mark: REMOVED });
    }
    const shown = replaced.filter(([id]) => visible.has(thread.entries.get(id)!.index));
    for (const [id, data] of shown) {
      operations.push({ operation: "replace", indices: [thread.entries.get(id)!.index], data } as unknown as Operation);
    }
    if (added.length > 0) operations.push({ operation: "APPEND", messages: added.map(([, message]) => message) });
    if (operations.length > 0) {
      const outcome = await thread.conversation.apply(operations, { expectedVersion: thread.version });
      [...shown, ...added].forEach(([id, message], at) =>
        thread.entries.set(id, knownOf(outcome.added[at]!, message)),
      );
      thread.version = outcome.version;
    }
    for (const [id] of gone) thread.entries.delete(id);
  }

  async #cut(thread: Thread): Promise<{ hidden: number; tokens: number }> {
    const { maxTokens, targetTokens = Math.floor(maxTokens * 0.7) } = this.#options;
    const { tokens } = await thread.conversation.stats();
    if (tokens <= maxTokens || thread.isPaused) return { hidden: 0, tokens };
    const description = `${tokens} tokens are over the budget of ${maxTokens}`;
    const fit = (limit: number) =>
      thread.conversation.fit(limit, { description, expectedVersion: thread.version });
    let outcome;
    try {
      outcome = await fit(Math.min(targetTokens, maxTokens));
    } catch (error) {
      // The newest exchange alone is larger than the target, so the list is cut to the smallest possible size.
      if (!(error instanceof BudgetTooSmall) || error.needed === undefined || error.needed > maxTokens) throw error;
      outcome = await fit(error.needed);
    }
    thread.version = outcome.version;
    return { hidden: outcome.hidden.length, tokens: outcome.stats.tokens };
  }

  /** Loads changes by other writers. Pauses the thread if such a change undid a cut. */
  async #loadOthersChanges(thread: Thread): Promise<void> {
    const [newest] = await thread.conversation.versions({ limit: 1 });
    if (newest === undefined || newest.version === thread.version) return;
    const isByHand = ["UNDO", "ROLLBACK", "RESTORE"].includes(newest.operation);
    if (isByHand && newest.tokens > this.#options.maxTokens) thread.isPaused = true;
    thread.version = newest.version;
    await load(thread);
  }

  async #view(thread: Thread): Promise<{ version: number; originalIndices: number[] }> {
    const { originalIndices } = await thread.conversation.markMap();
    return { version: thread.version, originalIndices };
  }

  async #messageOfEntry(thread: Thread, index: number): Promise<BaseMessage> {
    const [entry] = await thread.conversation.entries([index]);
    return this.#restore(restored(entry!.message));
  }

  /** The thread. Concurrent calls share one promise, so that their messages are recorded in the order of the calls. */
  #thread(threadId: string): Promise<Thread> {
    const known = this.#threads.get(threadId);
    if (known) return known;
    const opened = this.#open(threadId);
    this.#threads.set(threadId, opened);
    opened.catch(() => this.#threads.delete(threadId));
    if (this.#threads.size > MAX_THREADS) this.#threads.delete(this.#threads.keys().next().value!);
    return opened;
  }

  async #open(threadId: string): Promise<Thread> {
    const { counter } = this.#options;
    const conversation = await this.store.conversationOrCreate(this.#name(threadId), counter ? { counter } : {});
    const version = await conversation.version();
    const thread = { conversation, entries: new Map(), version, isPaused: false, last: Promise.resolve() };
    await load(thread);
    return thread;
  }

  #name(threadId: string): string {
    return conversationName(this.#options.prefix ?? "langchain/", threadId);
  }
}

/** Reads the newest log entry of each message id, without those of messages that left the state. */
async function load(thread: Thread): Promise<void> {
  const entries: Entry[] = await thread.conversation.query({ scope: "all" });
  // Another process may have hidden entries that this one knows.
  thread.entries.clear();
  // In the order of the log: the newest entry of an id decides, also if it has left the state.
  for (const { index, message, marks } of entries) {
    if (message.id === undefined) continue;
    if (marks?.includes(REMOVED)) thread.entries.delete(message.id);
    else thread.entries.set(message.id, knownOf(index, message));
  }
}
