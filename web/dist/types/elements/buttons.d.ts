import { type TemplateResult, nothing } from 'lit';
import type { Bellwire } from '../bellwire.ts';
import { type Notification } from '../notification.ts';
import type { Request } from '../store/requests.ts';
import type { Strings } from '../strings.ts';
export interface ItemView {
    readonly item: Notification;
    readonly bellwire: Bellwire;
    readonly strings: Strings;
    readonly request: Request | null;
}
/** The buttons, or what became of them. */
export declare function buttons(view: ItemView): TemplateResult | typeof nothing;
/** The last line: where the notification comes from, and what its buttons send. */
export declare function lastLine(view: ItemView, details?: readonly string[]): TemplateResult | typeof nothing;
