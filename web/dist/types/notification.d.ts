export type NotificationType = 'reminder' | 'info' | 'success' | 'warning' | 'error';
export type Position = 'top-right' | 'top-center' | 'bottom-right';
export declare const POSITIONS: readonly Position[];
export declare const TYPES: readonly NotificationType[];
export interface Action {
    readonly label: string;
    readonly action: 'prompt' | 'dismiss';
    /** What a `prompt` button says to the agent. */
    readonly prompt: string | null;
    readonly pressed_at: string | null;
}
export interface Notification {
    readonly id: string;
    /** `page`: the hub does not have it, so it exists only in this page. */
    readonly from: 'hub' | 'page';
    readonly kind: 'message' | 'toast' | 'note';
    readonly type: NotificationType;
    /** The authenticated sender; null for a notification of the page. */
    readonly origin: string | null;
    /** What the sender says where it comes from. Not authenticated. */
    readonly source: string | null;
    readonly conversation_id: string | null;
    readonly title: string | null;
    readonly message: string;
    /** In milliseconds; 0 = until it is dismissed. */
    readonly duration: number;
    readonly position: Position;
    readonly actions: readonly Action[];
    readonly created_at: string;
    readonly read_at: string | null;
    readonly dismissed_at: string | null;
    /** What became of it outside of the hub, if the hub says so. */
    readonly deliveries: readonly Delivery[];
}
export interface Delivery {
    readonly channel: string;
    readonly state: string;
    readonly at: string;
    readonly reason: string | null;
}
/** The button that was pressed first. */
export declare function pressedAction(item: Notification): Action | null;
/** Whether nothing is left to do with it: its toast is withdrawn in every tab. */
export declare function isSettled(item: Notification): boolean;
export declare function isPersistent(item: Notification): boolean;
export declare function isRecord(value: unknown): value is Record<string, unknown>;
