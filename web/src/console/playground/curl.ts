/** A command that makes the same request. The token is a variable, so that none is copied by accident. */
export function curlOf(origin: string, path: string, body: unknown): string {
  return [
    `curl -sS ${quoted(origin + path)}`,
    '  -H "Authorization: Bearer $BELLWIRE_TOKEN"',
    "  -H 'Content-Type: application/json'",
    `  -d ${quoted(JSON.stringify(body))}`,
  ].join(' \\\n');
}

/** In single quotes, as a shell takes it literally. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
