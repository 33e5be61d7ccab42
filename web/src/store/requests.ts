import type { Problem } from '../problem.ts';
import { Observable } from './observable.ts';

/** How many requests are kept; the oldest are forgotten. */
const REQUESTS_MAX = 100;

/** What the person asked for with one notification, and how it went. */
export interface Request {
  readonly action: 'press' | 'dismiss' | 'read' | 'unread' | 'restore';
  /** The index of the pressed button. */
  readonly index: number | null;
  readonly state: 'sending' | 'sent' | 'failed';
  readonly problem: Problem | null;
}

/** The last request about each notification. */
export class Requests {
  readonly all = new Observable<ReadonlyMap<string, Request>>(new Map());

  of(id: string): Request | null {
    return this.all.get().get(id) ?? null;
  }

  remember(id: string, request: Request): void {
    const others = [...this.all.get()].filter(([other]) => other !== id).slice(1 - REQUESTS_MAX);
    this.all.set(new Map([...others, [id, request]]));
  }

  /** Forgets the request, if it is in this state. */
  forget(id: string, state: Request['state']): void {
    if (this.of(id)?.state === state) this.all.set(new Map([...this.all.get()].filter(([other]) => other !== id)));
  }
}
