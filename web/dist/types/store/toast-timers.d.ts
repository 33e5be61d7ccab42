import { Observable } from './observable.ts';
import { type Deck } from './toasts.ts';
/** Drives the deck with the page's clock: wakes when a timer ends, and pauses while the tab is hidden. */
export declare class ToastTimers {
    #private;
    readonly deck: Observable<Deck>;
    /** `timedOut` is called with each toast that was shown for its time. */
    constructor(timedOut: (id: string) => void);
    move(step: (deck: Deck, now: number) => Deck): void;
    close(): void;
}
