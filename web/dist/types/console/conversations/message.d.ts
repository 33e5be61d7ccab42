import { type TemplateResult, nothing } from 'lit';
import type { Message } from '../wire.ts';
/** A system message that the agent read: TOON as a table, the raw text on demand. */
export declare function messageView(message: Message, isRaw: boolean, toggle: () => void): TemplateResult;
export declare function emptyTranscript(): TemplateResult | typeof nothing;
