/** State that can be watched. `get` returns the same object until the state changes. */
export interface Readable<State> {
    readonly get: () => State;
    /** Calls the listener after every change. Returns the function that ends it. */
    readonly subscribe: (listener: () => void) => () => void;
}
/** State that lives outside of the components; they only draw it. */
export declare class Observable<State> implements Readable<State> {
    #private;
    constructor(state: State);
    get: () => State;
    set(state: State): void;
    update(change: (state: State) => State): void;
    subscribe: (listener: () => void) => (() => void);
}
