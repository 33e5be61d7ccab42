import { Bellwire } from '../bellwire.ts';
import { Api } from './api.ts';
import type { Session, Sessions } from './session.ts';
export declare class Workspace {
    readonly session: Session;
    readonly api: Api;
    /** Whose inbox, conversations and settings are shown. */
    readonly person: string;
    readonly bellwire: Bellwire;
    constructor(sessions: Sessions, session: Session, person: string | null);
    get isAdmin(): boolean;
    /** Whether an operator looks at another person's data, which is for reading only. */
    get isReadOnly(): boolean;
    close(): void;
}
