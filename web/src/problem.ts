import { HubError } from './client/http.ts';

/** Why something that the person wanted did not happen. The strings of an element have a text for each code. */
export interface Problem {
  readonly code: 'unreachable' | 'signed_out' | 'too_many' | 'answered' | 'gone' | 'failed';
  /** The text of the hub or of the page, or the label of the button that was pressed first. */
  readonly detail: string | null;
}

export function problemOf(error: unknown): Problem {
  if (!(error instanceof HubError)) return { code: 'failed', detail: error instanceof Error ? error.message : String(error) };
  const { status, problem, message } = error;
  if (problem?.settled_by) return { code: 'answered', detail: problem.settled_by.label ?? null };
  switch (status) {
    case 0:
    case 502:
    case 503:
    case 504:
      return { code: 'unreachable', detail: null };
    case 401:
      return { code: 'signed_out', detail: null };
    case 404:
      return { code: 'gone', detail: null };
    case 429:
      return { code: 'too_many', detail: null };
    default:
      return { code: 'failed', detail: message };
  }
}

/** Whether the same request may succeed later. */
export function canRetry({ code }: Problem): boolean {
  return code !== 'answered' && code !== 'gone' && code !== 'signed_out';
}
