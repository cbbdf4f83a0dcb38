import { randomUUID } from "node:crypto";

import { asObjectWith } from "../checks.js";
import { ConversationExists } from "../errors.js";
import { changeSync, Store } from "../store.js";
import type { CounterName, Outcome, Settings } from "../types.js";
import { seedError } from "./errors.js";
import type { AnyOperation, Message, MessageOperationResult } from "./types.js";

/** Where a manager keeps its messages. Default: in memory, until the manager is garbage-collected. */
export interface StorageOptions {
  /** A store, or the address of one. Default: `memory:`. */
  store?: string | Store;
  /** The conversation. It is created if it does not exist. Default: a new name. */
  name?: string;
  /** The token counter of a new conversation. Default: `o200k_base`. */
  counter?: CounterName;
}

/** The conversation of a manager, with synchronous requests. */
export class StoredConversation {
  readonly store: Store;
  readonly name: string;

  constructor({ store = "memory:", name, counter }: StorageOptions, settings: Settings, messages?: readonly Message[]) {
    this.store =
      typeof store === "string" ? Store.openSync(store) : asObjectWith(store, "store", "a store or an address", "requestSync");
    this.name = name ?? `messages-${randomUUID()}`;
    const chosen = counter === undefined ? settings : { counter, ...settings };
    try {
      this.store.requestSync({ create: this.name, settings: chosen, messages });
    } catch (error) {
      const isOpened = error instanceof ConversationExists && !messages?.length;
      if (!isOpened) throw seedError(error);
    }
  }

  request<R = any>(request: Record<string, unknown>): R {
    try {
      return this.store.requestSync<R>({ conversation: this.name, ...request });
    } catch (error) {
      throw seedError(error);
    }
  }

  execute(operations: AnyOperation | readonly AnyOperation[]): MessageOperationResult {
    const outcome = this.#change(Array.isArray(operations) ? { ops: operations } : { op: operations });
    let state: MessageOperationResult["state"] | undefined;
    const read = () => (state ??= this.request({ state: true, at: outcome.version }));
    return Object.defineProperty(outcome, "state", { get: read, enumerable: true }) as Outcome & MessageOperationResult;
  }

  #change(request: Record<string, unknown>): Outcome {
    try {
      return changeSync(this.store, { conversation: this.name, ...request });
    } catch (error) {
      throw seedError(error);
    }
  }

  messages<M extends Message = Message>(query: Record<string, unknown>): M[] {
    const { messages } = this.request<{ messages: { message: M }[] }>({ ask: query });
    return messages.map((entry) => entry.message);
  }
}
