/** The element that has the focus, also inside of shadow roots. */
export declare function focusedElement(): HTMLElement | null;
/** Whether a key press is the hotkey, such as `F8` or `Alt+T`. */
export declare function isHotkey(event: KeyboardEvent, hotkey: string): boolean;
