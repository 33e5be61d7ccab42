// What the person did in the inbox, so that it can be taken back.

/** How many steps can be taken back. */
const STEPS_MAX = 50;

export interface Step {
  readonly action: 'dismiss' | 'read' | 'unread';
  readonly id: string;
  /** What the notification says, in short. */
  readonly text: string;
}

export class Steps {
  #steps: readonly Step[] = [];

  get last(): Step | null {
    return this.#steps.at(-1) ?? null;
  }

  add(step: Step): void {
    this.#steps = [...this.#steps, step].slice(-STEPS_MAX);
  }

  /** Takes the last step off. */
  take(): Step | null {
    const { last } = this;
    this.#steps = this.#steps.slice(0, -1);
    return last;
  }
}

export function describeStep({ action, text }: Step): string {
  const short = text.length > 60 ? `${text.slice(0, 59)}…` : text;
  const did = { dismiss: 'Dismissed', read: 'Marked as read', unread: 'Marked as unread' }[action];
  return `${did}: “${short}”`;
}
