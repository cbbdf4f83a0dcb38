import { errorOf, InvalidRequest, type ErrorFields, type RectoError } from "./errors.js";

/** Deeper values are refused, so that no value exhausts the stack. */
const MAX_DEPTH = 400;

/**
 * The value as JSON. `JSON.stringify` drops functions, writes `NaN` as `null` and a `Map` as `{}`. Here they
 * are errors with the path of the value, because a message must not change without notice.
 */
export function encode(value: unknown): string {
  if (!isJson(value, 0)) throw refused(value);
  try {
    return JSON.stringify(value);
  } catch (error) {
    throw invalid("", `cannot be written as JSON: ${(error as Error).message}`);
  }
}

/** The response of a request as a value. Throws if it is an error. */
export function decode(text: string): any {
  const response = JSON.parse(text);
  if (text.startsWith(ERROR)) throw errorOf(response.error as ErrorFields);
  return response;
}

/** The response text. Throws if it is an error. */
export function checked(text: string): string {
  if (text.startsWith(ERROR)) throw errorOf(JSON.parse(text).error as ErrorFields);
  return text;
}

/** The error of the contract for an exception of the native library. */
export function nativeError(error: unknown): unknown {
  const message = error instanceof Error ? error.message : "";
  return message.startsWith(ERROR) ? errorOf(JSON.parse(message).error as ErrorFields) : error;
}

/** Only a refused request has a response that begins so. */
const ERROR = '{"error":';

function isJson(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return Number.isFinite(value);
    case "object":
      break;
    default:
      return false;
  }
  if (value === null) return true;
  if (depth > MAX_DEPTH) return false;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) if (!isJson(value[at], depth + 1)) return false;
    return true;
  }
  const given = value as Record<string, unknown>;
  if (typeof given["toJSON"] === "function") {
    const made = (given["toJSON"] as () => unknown)();
    return made !== value && isJson(made, depth + 1);
  }
  if (!isPlain(given)) return false;
  for (const key in given) {
    // A missing field and an undefined one mean the same.
    if (given[key] !== undefined && !isJson(given[key], depth + 1)) return false;
  }
  return true;
}

/** Whether an object has no class. Also true for objects of another realm, such as `node:vm`. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function refused(value: unknown): RectoError {
  const [path, reason] = fault(value, "", 0) ?? ["", "is not JSON"];
  return invalid(path, reason);
}

function invalid(path: string, reason: string): RectoError {
  // The path of a value that contains itself is as long as the limit of the depth.
  const field = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  const message = `${field || "the request"} ${reason}`;
  return new InvalidRequest({ code: "invalid_json", message, field: field || undefined });
}

/** The path of the first value that is not JSON, and the reason. */
function fault(value: unknown, path: string, depth: number): [string, string] | undefined {
  if (isScalar(value)) return undefined;
  if (typeof value === "number") return [path, `is ${value}, which is not JSON`];
  if (value === undefined) return [path, "is undefined"];
  if (typeof value !== "object") return [path, `is a ${typeof value}, which is not JSON`];
  if (depth > MAX_DEPTH) return [path, "contains itself, or is nested too deeply"];
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) {
      const found = fault(value[at], `${path}[${at}]`, depth + 1);
      if (found) return found;
    }
    return undefined;
  }
  const given = value as Record<string, unknown>;
  if (typeof given["toJSON"] === "function") return fault((given["toJSON"] as () => unknown)(), path, depth + 1);
  if (!isPlain(given)) {
    return [path, `is an object of the class ${given.constructor?.name || "without a name"}, which is not JSON`];
  }
  for (const key in given) {
    const found = given[key] === undefined ? undefined : fault(given[key], path ? `${path}.${key}` : key, depth + 1);
    if (found) return found;
  }
  return undefined;
}

function isScalar(value: unknown): boolean {
  const kind = typeof value;
  return value === null || kind === "string" || kind === "boolean" || (kind === "number" && Number.isFinite(value));
}
