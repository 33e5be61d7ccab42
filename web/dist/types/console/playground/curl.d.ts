/** A command that makes the same request. The token is a variable, so that none is copied by accident. */
export declare function curlOf(origin: string, path: string, body: unknown): string;
/** In single quotes, as a shell takes it literally. */
export declare function quoted(text: string): string;
