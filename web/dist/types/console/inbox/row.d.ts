import { type TemplateResult } from 'lit';
import { type ItemView } from '../../elements/buttons.ts';
export interface InboxRowView extends ItemView {
    readonly now: number;
    readonly isReadOnly: boolean;
    /** The row that the keys act on. */
    readonly isCurrent: boolean;
    readonly isOpen: boolean;
    readonly choose: () => void;
    readonly open: () => void;
    readonly toggleRead: () => void;
    readonly dismiss: () => void;
    readonly restore: () => void;
}
/** One notification of the inbox. */
export declare function inboxRow(view: InboxRowView, index: number, count: number): TemplateResult;
