import { Bellwire, type BellwireOptions } from './bellwire.js';
/** The instance that the elements of a page use unless they are given another. */
export declare const page: {
    /** The page's instance. One without a hub is made where there is none. */
    current(): Bellwire;
    peek: () => Bellwire | null;
    subscribe: (listener: () => void) => (() => void);
};
/** Connects the page to a person's notifications; a former connection of the page ends. */
export declare function connect(options: BellwireOptions): Bellwire;
/** Ends the connection of the page, such as when the person signs out. What it showed is gone. */
export declare function disconnect(which?: Bellwire | null): void;
