import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";

import type {
  AgentInputItem,
  SessionHistoryRewriteArgs,
  SessionHistoryRewriteAwareSession,
  SessionHistoryTransactionArgs,
  SessionHistoryTransactionAwareSession,
} from "@openai/agents-core";

import { asCount, asList, asObject, asObjectWith, asText } from "../checks.js";
import type { Conversation } from "../conversation.js";
import { InvalidRequest, RectoError, VersionConflict } from "../errors.js";
import { encode } from "../json.js";
import { conversationName } from "../names.js";
import { Store } from "../store.js";
import type { CounterName, Entry, Message, Operation, VersionInfo } from "../types.js";
import type { BudgetOptions } from "../growing-list.js";
import { fitInput } from "./fit-input.js";
import { fromRecto, toRecto } from "./items.js";

export interface SessionOptions {
  /** The token counter of a new session. Default: `o200k_base`. */
  counter?: CounterName;
  /** The start of the name of the conversation. Default: `agents/`. */
  prefix?: string;
}

/** The default start of the names of conversations. */
const PREFIX = "agents/";
/** Maximum attempts after version conflicts. */
const MAX_ATTEMPTS = 100;

/** The note of a version that a history transaction made. */
interface TransactionNote {
  recto: "openai-agents";
  operation: string;
  transaction: string;
}

/**
 * A session whose items are the messages of a conversation. `getItems` returns items exactly as they were added,
 * because the SDK compares them. Every change can be undone.
 */
export class RectoSession implements SessionHistoryTransactionAwareSession, SessionHistoryRewriteAwareSession {
  readonly id: string;
  /** The conversation, with all versions of the session. */
  readonly conversation: Conversation;
  /** The transactions up to the version `#scanned`: hash of the operation id -> hash of the transaction. */
  readonly #transactions = new Map<string, string>();
  #scanned = -1;
  readonly #prefix: string;

  private constructor(id: string, conversation: Conversation, prefix: string) {
    this.id = id;
    this.conversation = conversation;
    this.#prefix = prefix;
  }

  /** Opens a session of a store. It is created if it does not exist. Any text is a valid id. */
  static async open(id: string, store: Store, options: SessionOptions = {}): Promise<RectoSession> {
    asText(id, "id");
    asObjectWith(store, "store", "a store", "request");
    const { prefix = PREFIX, ...settings } = asObject(options, "options");
    const name = conversationName(asText(prefix, "prefix"), id);
    return new RectoSession(id, await store.conversationOrCreate(name, settings), prefix);
  }

  // The interface of the SDK.

  async getSessionId(): Promise<string> {
    return this.id;
  }

  async getItems(limit?: number): Promise<AgentInputItem[]> {
    if (limit !== undefined && limit <= 0) return [];
    const entries = await this.conversation.query(limit === undefined ? {} : { last: limit });
    return entries.map((entry) => fromRecto(entry.message));
  }

  /** Adds items, all of them or none. */
  async addItems(items: AgentInputItem[]): Promise<void> {
    asList(items, "items").forEach((item, at) => asObject(item, `items[${at}]`));
    if (items.length > 0) await this.conversation.append(items.map(toRecto));
  }

  /** Removes the newest item from the view. UNDO shows it again. */
  async popItem(): Promise<AgentInputItem | undefined> {
    let popped: Message | undefined;
    await this.#change((entries) => {
      const last = entries.at(-1);
      popped = last?.message;
      return last ? [{ operation: "DELETE", indices: [last.index], description: "popped" }] : [];
    });
    return popped && fromRecto(popped);
  }

  /** Removes all items from the view. UNDO shows them again. */
  async clearSession(): Promise<void> {
    await this.conversation.apply({ operation: "CLEAR", keepSystemMessage: false, description: "session cleared" });
  }

  /** Replaces function calls. A second call with the same id is removed, as the SDK does. */
  async applyHistoryMutations({ mutations }: SessionHistoryRewriteArgs): Promise<void> {
    await this.#change((entries) => {
      const items = entries.map((entry) => fromRecto(entry.message));
      return mutations.flatMap(({ callId, replacement }) => {
        const isCall = (item: AgentInputItem) => item.type === "function_call" && item.callId === callId;
        const [first, ...others] = items.flatMap((item, at) => (isCall(item) ? [at] : []));
        if (first === undefined) return [];
        const operations: Operation[] = [{ operation: "REPLACE", index: first, message: toRecto(replacement) }];
        const indices = others.map((at) => entries[at]!.index);
        if (indices.length > 0) operations.push({ operation: "DELETE", indices });
        return operations;
      });
    });
  }

  /**
   * Appends items or replaces the newest ones, atomically. A repeated operation id with the same transaction does
   * nothing, also in another process; with another transaction it fails.
   */
  async applyHistoryTransaction({ operationId, transaction }: SessionHistoryTransactionArgs): Promise<void> {
    if (typeof operationId !== "string" || operationId.trim() === "") {
      throw refused("operationId must be a string that is not empty", "operationId");
    }
    const { expected, added } = suffixAndItems(transaction);
    const hashes = { operation: hash(operationId), transaction: hash(encode({ expected, added })) };
    const note: TransactionNote = { recto: "openai-agents", ...hashes };
    await this.#change(async (entries, version) => {
      await this.#scan(version);
      const known = this.#transactions.get(note.operation);
      if (known === note.transaction) return [];
      if (known !== undefined) throw refused("operationId was used for another transaction", "operationId");
      const suffix = expected.length > 0 ? entries.slice(-expected.length) : [];
      if (!isDeepStrictEqual(suffix.map(({ message }) => message), expected)) {
        throw refused("the newest items are not the expected suffix", "transaction.expectedSuffix");
      }
      const operations: Operation[] = [];
      const indices = suffix.map((entry) => entry.index);
      if (indices.length > 0) operations.push({ operation: "DELETE", indices });
      if (added.length > 0) operations.push({ operation: "APPEND", messages: added });
      return operations;
    }, note);
  }

  // Methods beyond the interface of the SDK.

  /** A `callModelInputFilter` that bounds and repairs the input of each model call. The session keeps all items. */
  fit(options: BudgetOptions): ReturnType<typeof fitInput> {
    return fitInput(options);
  }

  /** Hides the items from the last message of the user on, or the newest `steps` items. Returns their number. */
  async rewind(options: { steps?: number } = {}): Promise<number> {
    const { steps } = asObject(options, "options");
    if (steps !== undefined) asCount(steps, "steps", { min: 0 });
    let count = 0;
    await this.#change((entries) => {
      const lastUser = entries.map(({ message }) => message.role).lastIndexOf("user");
      const start = steps === undefined ? lastUser : Math.max(entries.length - steps, 0);
      const indices = start < 0 ? [] : entries.slice(start).map((entry) => entry.index);
      count = indices.length;
      return count > 0 ? [{ operation: "DELETE", indices, description: "rewound" }] : [];
    });
    return count;
  }

  /** Reverts the newest change of the session. */
  async undo(): Promise<void> {
    await this.conversation.undo();
  }

  /** A session that starts at a version of this one. It copies no items. */
  async fork(id: string, { at }: { at?: number } = {}): Promise<RectoSession> {
    const name = conversationName(this.#prefix, asText(id, "id"));
    return new RectoSession(id, await this.conversation.fork(name, at === undefined ? {} : { at }), this.#prefix);
  }

  /** Applies operations that depend on the view. After a version conflict they are computed again. */
  async #change(
    operations: (entries: Entry[], version: number) => Operation[] | Promise<Operation[]>,
    note?: TransactionNote,
  ): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const shown = await this.conversation.request<{ version: number; messages: Entry[] }>({ show: true });
      const changes = await operations(shown.messages, shown.version);
      if (changes.length === 0) return;
      try {
        await this.conversation.apply(changes, { expectedVersion: shown.version, ...(note && { note }) });
        return;
      } catch (error) {
        if (!(error instanceof VersionConflict) || attempt === MAX_ATTEMPTS) throw error;
      }
    }
  }

  /** Reads the notes of the versions up to `version` that were not read before. */
  async #scan(version: number): Promise<void> {
    let before = version + 1;
    while (before > this.#scanned + 1) {
      const page: VersionInfo[] = await this.conversation.versions({ before, limit: 1000 });
      for (const { note } of page) {
        const { recto, operation, transaction } = (note ?? {}) as Partial<TransactionNote>;
        if (recto === "openai-agents" && operation && transaction) this.#transactions.set(operation, transaction);
      }
      const oldest = page.at(-1);
      if (oldest === undefined) break;
      before = oldest.version;
    }
    this.#scanned = version;
  }
}

/** The messages that a transaction expects at the end, and those that it adds. */
function suffixAndItems(transaction: SessionHistoryTransactionArgs["transaction"]): { expected: Message[]; added: Message[] } {
  // Stored messages have passed through JSON, so the messages that are compared with them must too.
  const messages = (items: AgentInputItem[], field: string): Message[] => {
    if (!Array.isArray(items)) throw refused(`${field} must be a list`, `transaction.${field}`);
    return JSON.parse(encode(items.map(toRecto)));
  };
  switch (transaction?.type) {
    case "append_items":
      return { expected: [], added: messages(transaction.items, "items") };
    case "replace_suffix":
      return {
        expected: messages(transaction.expectedSuffix, "expectedSuffix"),
        added: messages(transaction.replacement, "replacement"),
      };
    default:
      throw refused("type must be append_items or replace_suffix", "transaction.type");
  }
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function refused(message: string, field: string): RectoError {
  return new InvalidRequest({ code: "invalid_operation", message, field });
}
