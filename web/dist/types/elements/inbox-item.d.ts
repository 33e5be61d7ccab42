import { type TemplateResult } from 'lit';
import { type ItemView } from './buttons.ts';
export interface InboxItemView extends ItemView {
    readonly now: number;
    readonly language: string | undefined;
}
/** One notification in the list, with the same buttons as its toast. */
export declare function inboxItem(view: InboxItemView): TemplateResult;
