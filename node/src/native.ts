import { nativeFile, platform } from "./native-file.js";

/** Options of the native `open`. */
export interface NativeOptions {
  tenant?: string;
  search?: boolean;
  maxMessageBytes?: number;
}

/** The native class: JSON text in, JSON text out. An error of the contract is a response. */
export interface NativeStore {
  request(text: string): Promise<string>;
  requestSync(text: string): string;
  changeSync(text: string): NativeChange;
  close(): void;
  readonly closed: boolean;
}

/** The response to a change: JSON text. Its lists of indices are apart, unless it is complete. */
export interface NativeChange {
  readonly response: string;
  readonly isComplete: boolean;
  hidden(): string;
  shown(): string;
  added(): string;
}

interface Native {
  NativeStore: {
    open(address: string, options: NativeOptions): Promise<NativeStore>;
    openSync(address: string, options: NativeOptions): NativeStore;
  };
  schema(): string;
  compute(text: string): string;
}

/** The native library: beside `dist/` in this package, or in the package of this platform. */
export const native: Native = load();

function load(): Native {
  const failures: string[] = [];
  for (const place of [`../${nativeFile()}`, `recto-context-${platform()}`]) {
    try {
      return require(place) as Native;
    } catch (error) {
      failures.push(`${place}: ${(error as Error).message.split("\n")[0]}`);
    }
  }
  throw new Error(
    `recto-context has no native library for ${platform()}. Build it with \`npm run build\` in a clone, ` +
      `or install a package that has it.\n${failures.join("\n")}`,
  );
}
