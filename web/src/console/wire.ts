// What the console reads from the hub, by the types of docs/openapi.json.
import type { components } from '../api.d.ts';

type Schemas = components['schemas'];

export type Conversation = Schemas['ListedConversation'];
export type Delivery = Schemas['Delivery'];
export type DryRunResult = Schemas['DryRunResult'];
export type EventType = Schemas['EventTypeInfo'];
export type Fate = Schemas['Fate'];
export type LedgerEntry = Schemas['LedgerEntry'];
export type LedgerSums = Schemas['LedgerSums'];
export type ListedEvent = Schemas['ListedEvent'];
export type Message = Schemas['Message'];
export type Settings = Schemas['Settings'];
export type SettingsChange = Schemas['SettingsChange'];
export type Pending = Schemas['PendingNotification'];
export type Pairing = Schemas['PairingCode'];
export type SessionView = Schemas['Session'];
export type Severity = ListedEvent['severity'];
export type Subscriber = Schemas['Subscriber'];
export type Statistics = Schemas['StatisticsBody'];
export type Tool = Schemas['ToolInfo'];
export type Trace = Schemas['Trace'];
export type Verdict = Schemas['Verdict'];

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next_cursor: string | null;
}
