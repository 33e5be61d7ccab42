/** How to reach the hub. One of `token`, `headers` and `fetch` authorizes the requests. */
export interface Access {
    /** The address of the hub, such as `https://bell.example.org`. Default: the origin of the page. */
    readonly url?: string;
    /** A token of scope `user`, or a function that returns one. It is called for every request. */
    readonly token?: string | (() => string | Promise<string>);
    /** Headers that authorize a request, instead of a token. */
    readonly headers?: () => HeadersInit | Promise<HeadersInit>;
    /**
     * Makes the requests, instead of a token: a page that may not hold one sends them to its own server. The path begins with
     * `/v1/`. Pass on the method, the headers, the body and the signal.
     */
    readonly fetch?: (path: string, init: RequestInit) => Promise<Response>;
}
