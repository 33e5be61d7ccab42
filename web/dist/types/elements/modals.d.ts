/** The modal dialog that was opened last. */
export declare function topModal(opened: readonly HTMLDialogElement[]): HTMLDialogElement | null;
/** Watches the dialogs of the page. Those inside of shadow roots are not seen. */
export declare class Modals {
    #private;
    constructor(changed: () => void);
    get top(): HTMLDialogElement | null;
    disconnect(): void;
}
