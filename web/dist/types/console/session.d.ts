import { type Readable } from '../store/observable.ts';
export interface Session {
    readonly token: string;
    readonly scope: 'user' | 'admin';
    /** Null: an operator who is no person of this hub. */
    readonly user: string | null;
}
export type SignIn = {
    readonly kind: 'waiting';
}
/** `reason`: why there is no session, if there was one or was to be one. */
 | {
    readonly kind: 'none';
    readonly reason: string | null;
} | {
    readonly kind: 'signed_in';
    readonly session: Session;
};
export declare class Sessions {
    #private;
    constructor();
    get state(): Readable<SignIn>;
    get current(): Session | null;
    /** Begins with the code of a link, the session of this tab, or that of another tab. */
    start(): Promise<void>;
    /** Exchanges the code of a sign-in link, which works once. */
    signInByCode(code: string): Promise<void>;
    /** Signs in with a token of scope `user` or `admin`. Returns why it cannot be used; null = it can. */
    signInByToken(token: string): Promise<string | null>;
    /** Ends the session on the hub, if it is one there, and in every tab. */
    signOut(): Promise<void>;
    /** The hub no longer accepts this token. */
    end(token: string, reason?: string): void;
}
/** Names the browser in the list of sessions, such as `Firefox on Linux`. */
export declare function browserName(agent: string): string;
