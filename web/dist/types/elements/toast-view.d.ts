import { type TemplateResult } from 'lit';
import type { Toast } from '../store/toasts.ts';
import { type ItemView } from './buttons.ts';
export interface ToastView extends ItemView {
    readonly toast: Toast;
    /** Whether the text is longer than the toast shows. */
    readonly long: boolean;
    /** Whether the person asked for the whole text. */
    readonly open: boolean;
    readonly toggle: () => void;
    readonly keydown: (event: KeyboardEvent) => void;
    readonly pointerdown: (event: PointerEvent) => void;
}
/** One toast. */
export declare function toastView(view: ToastView): TemplateResult;
/** What a screen reader says when the toast appears. */
export declare function announcement({ item, strings }: Pick<ItemView, 'item' | 'strings'>, hotkey: string): string;
