// Downloads: save a Blob under a name, and write rows as CSV.

/** Download a Blob as a file. */
export function saveFile(blob, name) {
  const url = URL.createObjectURL(blob);
  Object.assign(document.createElement("a"), { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000); // the browser reads it after the click
}

/**
 * Format rows of values as CSV (RFC 4180). A text that a spreadsheet would run as a formula gets an
 * apostrophe.
 */
export function csv(rows) {
  const cell = (value) => {
    const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return new Blob([rows.map((row) => row.map(cell).join(",")).join("\r\n"), "\r\n"], { type: "text/csv" });
}
