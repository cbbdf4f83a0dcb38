/** The platform of this process, as in `linux-x64-gnu`. */
export function platform(): string {
  const name = `${process.platform}-${process.arch}`;
  return process.platform === "linux" ? `${name}-${usesGlibc() ? "gnu" : "musl"}` : name;
}

/** The file name of the native library in this package. */
export function nativeFile(): string {
  return `recto.${platform()}.node`;
}

function usesGlibc(): boolean {
  const report = process.report?.getReport() as { header?: { glibcVersionRuntime?: string } } | undefined;
  return report?.header?.glibcVersionRuntime !== undefined;
}
