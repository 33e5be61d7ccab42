import { type Toast } from '../store/toasts.ts';
/** A toast slides in and fades in; with reduced motion it only fades. */
export declare function enter(element: HTMLElement, fromBottom: boolean): void;
export declare function exit(element: HTMLElement): void;
/** The bar shows the time that is left. It stops with the timer. */
export declare function shrink(bar: HTMLElement, toast: Toast, now: number): void;
