import { asCount, asFlag, asObject, asText } from "./checks.js";
import { Conversation } from "./conversation.js";
import { ConversationExists, InvalidRequest } from "./errors.js";
import { checked, decode, encode, nativeError } from "./json.js";
import { native, type NativeOptions, type NativeStore } from "./native.js";
import type * as t from "./types.js";

/** A request of the shared vocabulary (`docs/exec.md`). */
export type Request = Record<string, unknown>;

export interface OpenOptions {
  /** The tenant whose conversations are read and written. Default: the tenant with the empty name. */
  tenant?: string;
  /** Whether a store that is created here has an index for `search`. Default: true, except in memory. */
  search?: boolean;
  /**
   * The largest accepted message, in bytes of its JSON: 1 to 2³² - 1. A larger one is refused with `too_large`.
   * Default: 32 MiB, which has room for an image in base64.
   */
  maxMessageBytes?: number;
}

export interface ImportOptions {
  /** The format of the transcript. Default: detected from the data. */
  format?: string;
  /** The path of the messages in a larger document, such as `request.messages`. Default: detected. */
  select?: string;
  /** The settings of the conversation, without `tools`. */
  settings?: t.Settings;
  /** `["state"]` adds the state of the first conversation. */
  return?: "state"[];
}

/**
 * `requestSync` for a change. The lists of indices are read from the outcome when they are first used, because they
 * may have an index for every message. The package does not export it.
 */
export let changeSync: (store: Store, request: Request) => t.Outcome;

/**
 * An open store. Any number of requests may run at the same time.
 *
 * ```js
 * const store = await Store.open("sqlite:conversations.db");
 * const conversation = await store.create("support");
 * await conversation.append({ role: "user", content: "Checkout fails!" });
 * ```
 */
export class Store {
  readonly #native: NativeStore;
  // Private, so that a password is not printed with the object.
  readonly #address: string;

  static {
    changeSync = (store, request) => {
      const change = store.#native.changeSync(encode(request));
      const outcome = decode(change.response);
      if (change.isComplete) return outcome;
      for (const name of ["hidden", "shown", "added"] as const) {
        let list: number[] | undefined;
        Object.defineProperty(outcome, name, {
          get: () => (list ??= JSON.parse(change[name]())),
          set: (given) => (list = given),
          enumerable: true,
          configurable: true,
        });
      }
      return outcome;
    };
  }

  private constructor(opened: NativeStore, address: string) {
    this.#native = opened;
    this.#address = address;
  }

  /** The address that the store was opened with. It may contain a password. */
  get address(): string {
    return this.#address;
  }

  /** Opens the store at an address: `memory:`, `sqlite:PATH` or `postgres://…`. */
  static async open(address: string, options: OpenOptions = {}): Promise<Store> {
    const given = nativeOptions(address, options);
    try {
      return new Store(await native.NativeStore.open(address, given), address);
    } catch (error) {
      throw nativeError(error);
    }
  }

  /** `open` that blocks the thread. */
  static openSync(address: string, options: OpenOptions = {}): Store {
    const given = nativeOptions(address, options);
    try {
      return new Store(native.NativeStore.openSync(address, given), address);
    } catch (error) {
      throw nativeError(error);
    }
  }

  /** Performs any request of the shared vocabulary, with the response of `recto exec`. */
  async request<R = any>(request: Request): Promise<R> {
    return decode(await this.#native.request(encode(request)));
  }

  /** `request` that blocks the thread. It takes less time than `request` if the store is in memory. */
  requestSync<R = any>(request: Request): R {
    return decode(this.#native.requestSync(encode(request)));
  }

  /** `request` with JSON text, which keeps the bytes of messages and of large numbers. */
  async requestJson(text: string): Promise<string> {
    return checked(await this.#native.request(asText(text)));
  }

  /** `requestJson` that blocks the thread. */
  requestJsonSync(text: string): string {
    return checked(this.#native.requestSync(asText(text)));
  }

  /** Creates a conversation. */
  async create(name: string, options: t.CreateOptions = {}): Promise<Conversation> {
    const { messages, ...settings } = asObject(options, "options");
    await this.request({ create: name, settings, messages });
    return new Conversation(this, name);
  }

  /** A conversation by its name or id. Nothing is read here: the first request fails if it does not exist. */
  conversation(name: string): Conversation {
    return new Conversation(this, name);
  }

  /** A conversation by its name. It is created with these settings if it does not exist. */
  async conversationOrCreate(name: string, settings: t.Settings = {}): Promise<Conversation> {
    try {
      return await this.create(name, settings);
    } catch (error) {
      if (!(error instanceof ConversationExists)) throw error;
      return new Conversation(this, name);
    }
  }

  /** Conversations in the order of their names, at most `limit`. Default: 1000. */
  async list(options: { after?: string; limit?: number } = {}): Promise<t.ConversationInfo[]> {
    return (await this.request({ list: options })).conversations;
  }

  /** All conversations in the order of their names. */
  async *conversations(): AsyncGenerator<t.ConversationInfo, void, undefined> {
    for (let after: string | undefined; ; ) {
      const page = await this.request({ list: { after } });
      yield* page.conversations;
      if (!page.more) return;
      after = page.conversations.at(-1).name;
    }
  }

  /** Messages of all conversations that contain all words of the text. */
  async search(text: string, options: { limit?: number } = {}): Promise<t.SearchHit[]> {
    return (await this.request({ search: text, ...options })).messages;
  }

  /** Imports a transcript: JSON, or a string that contains it. Without a format, it is recognised. */
  async import(name: string, data: unknown, options: ImportOptions = {}): Promise<t.Imported> {
    return this.request({ import: name, data, ...options });
  }

  /** Checks everything that is stored. */
  async verify(): Promise<t.StoreVerification> {
    return this.request({ verify: true });
  }

  /** Whether `close` was called. */
  get closed(): boolean {
    return this.#native.closed;
  }

  /** Closes the store. Requests that run are completed. Closing it again has no effect. */
  close(): void {
    this.#native.close();
  }
}

/** The JSON Schema of all requests and responses. */
export function schema(): any {
  return JSON.parse(native.schema());
}

/** The largest number that the native library takes. */
const MAX_BYTES = 2 ** 32 - 1;

function nativeOptions(address: unknown, options: OpenOptions): NativeOptions {
  asText(address, "address");
  const { tenant, search, maxMessageBytes, ...unknown } = asObject(options, "options");
  const other = Object.keys(unknown)[0];
  if (other !== undefined) {
    const message = `unknown option "${other}"; allowed are "tenant", "search" and "maxMessageBytes"`;
    throw new InvalidRequest({ code: "invalid_operation", message, field: other });
  }
  const given: NativeOptions = {};
  if (tenant !== undefined) given.tenant = asText(tenant, "tenant");
  if (search !== undefined) given.search = asFlag(search, "search");
  if (maxMessageBytes !== undefined) given.maxMessageBytes = asCount(maxMessageBytes, "maxMessageBytes", { max: MAX_BYTES });
  return given;
}
