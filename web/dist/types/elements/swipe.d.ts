import type { Position } from '../notification.ts';
/** How far the pointer moved in the direction that dismisses: right, or up for toasts in the top centre. */
export declare function swiped(position: Position, dx: number, dy: number): number;
/** Whether a movement dismisses. */
export declare function dismisses(distance: number, milliseconds: number): boolean;
/** Follows a finger or a pen on a toast. A mouse selects text instead, and has the ×. */
export declare function followSwipe(start: PointerEvent, toast: HTMLElement, position: Position, held: (held: boolean) => void, dismiss: () => void): void;
