import type { Delivery } from '../../notification.ts';
/** What happened to a notification outside of the hub: `mailed 07:00 after quiet hours`. `at` is the time as people read it. */
export declare function deliveryText({ channel, state, reason }: Delivery, at: string): string;
