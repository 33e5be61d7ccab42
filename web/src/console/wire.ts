// What the console reads from the hub, by the types of docs/openapi.json.
import type { components } from '../api.d.ts';

type Schemas = components['schemas'];

export type Conversation = Schemas['ListedConversation'];
export type Delivery = Schemas['Delivery'];
export type DryRunResult = Schemas['DryRunResult'] & { readonly tokens?: number | null };
export type Fate = Schemas['Fate'];
export type LedgerEntry = Schemas['LedgerEntry'];
export type LedgerSums = Schemas['LedgerSums'];
export type ListedEvent = Schemas['ListedEvent'];
export type Message = Schemas['Message'];
export type Settings = Schemas['Settings'];
export type SettingsChange = Schemas['SettingsChange'];
export type Pairing = Schemas['PairingCode'];
export type SessionView = Schemas['Session'];
export type Severity = ListedEvent['severity'];
export type Subscriber = Schemas['Subscriber'] & { readonly last_24h?: Counts | null };
export type Trace = Schemas['Trace'];
export type Verdict = Schemas['Verdict'];

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next_cursor: string | null;
}

/** Columns of one value per minute, oldest first. */
export interface Statistics {
  readonly since: string;
  readonly start: string;
  readonly step_seconds: number;
  readonly events: readonly number[];
  readonly verdicts: Readonly<Record<'queued' | 'held' | 'duplicate' | 'filtered' | 'suppressed', readonly number[]>>;
  readonly injected_items: readonly number[];
  readonly injected_tokens: readonly number[];
  readonly saved_tokens: readonly number[];
  readonly injection_ms: Readonly<Record<'p50' | 'p99', readonly (number | null)[]>>;
  readonly pending: readonly (number | null)[];
  readonly oldest_pending_seconds: readonly (number | null)[];
  readonly oldest_delivery_seconds: readonly (number | null)[];
  readonly deliveries: Readonly<Record<'sent' | 'failed' | 'unknown' | 'skipped' | 'cancelled', readonly number[]>>;
}

/** The verdicts of a subscriber in the last day. */
export type Counts = Readonly<Record<'events' | 'queued' | 'held' | 'duplicate' | 'filtered' | 'suppressed' | 'notifications', number>>;
