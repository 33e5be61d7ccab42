// Icons of Lucide 1.62 (ISC licence, https://lucide.dev), only those that are used.
import { type SVGTemplateResult, svg } from 'lit';
import type { NotificationType } from '../notification.ts';

const circle = svg`<circle cx="12" cy="12" r="10"/>`;

const paths = {
  info: svg`${circle}<path d="M12 16v-4"/><path d="M12 8h.01"/>`,
  success: svg`${circle}<path d="m16 9-5.5 5.5L8 12"/>`,
  warning: svg`<path d="m21.73 18-8-14a2 2 0 0 0-3.48 0l-8 14A2 2 0 0 0 4 21h16a2 2 0 0 0 1.73-3"/><path d="M12 9v4"/><path d="M12 17h.01"/>`,
  error: svg`${circle}<path d="M12 8v4"/><path d="M12 16h.01"/>`,
  reminder: svg`${circle}<path d="M12 6v6l4 2"/>`,
  bell: svg`<path d="M10.268 21a2 2 0 0 0 3.464 0"/><path d="M3.262 15.326A1 1 0 0 0 4 17h16a1 1 0 0 0 .74-1.673C19.41 13.956 18 12.499 18 8A6 6 0 0 0 6 8c0 4.499-1.411 5.956-2.738 7.326"/>`,
  close: svg`<path d="M18 6 6 18"/><path d="m6 6 12 12"/>`,
  check: svg`<path d="M20 6 9 17l-5-5"/>`,
  read: svg`<path d="M21.2 8.4c.5.38.8.97.8 1.6v10a2 2 0 0 1-2 2H4a2 2 0 0 1-2-2V10a2 2 0 0 1 .8-1.6l8-6a2 2 0 0 1 2.4 0l8 6Z"/><path d="m22 10-8.97 5.7a1.94 1.94 0 0 1-2.06 0L2 10"/>`,
  unread: svg`<path d="m22 7-8.991 5.727a2 2 0 0 1-2.009 0L2 7"/><rect x="2" y="4" width="20" height="16" rx="2"/>`,
} satisfies Record<NotificationType, SVGTemplateResult> & Record<string, SVGTemplateResult>;

/** An icon in the colour of the text. Its meaning is always in a text beside it. */
export function icon(name: keyof typeof paths, size = 16): SVGTemplateResult {
  return drawing(paths[name], size);
}

/** The paths of an icon, on Lucide's grid. */
export function drawing(paths: SVGTemplateResult, size: number): SVGTemplateResult {
  return svg`<svg width=${size} height=${size} viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2"
    stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">${paths}</svg>`;
}
