// A notification as the page knows it: an inbox item of the hub, or one that the page found in a chat.

export type NotificationType = 'reminder' | 'info' | 'success' | 'warning' | 'error';
export type Position = 'top-right' | 'top-center' | 'bottom-right';

export const POSITIONS: readonly Position[] = ['top-right', 'top-center', 'bottom-right'];
export const TYPES: readonly NotificationType[] = ['reminder', 'info', 'success', 'warning', 'error'];

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
export function pressedAction(item: Notification): Action | null {
  return item.actions.find((action) => action.pressed_at !== null) ?? null;
}

/** Whether nothing is left to do with it: its toast is withdrawn in every tab. */
export function isSettled(item: Notification): boolean {
  return item.read_at !== null || item.dismissed_at !== null || pressedAction(item) !== null;
}

export function isPersistent(item: Notification): boolean {
  return item.duration === 0;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
