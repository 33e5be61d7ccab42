import { FADE_MS, type Toast, timeLeft } from '../store/toasts.ts';

/** How far a toast slides when it appears, in pixels. */
const SLIDE = 8;

function isReduced(): boolean {
  return matchMedia('(prefers-reduced-motion: reduce)').matches;
}

/** A toast slides in and fades in; with reduced motion it only fades. */
export function enter(element: HTMLElement, fromBottom: boolean): void {
  const from = isReduced() ? {} : { transform: `translateY(${String(fromBottom ? SLIDE : -SLIDE)}px)` };
  const to = isReduced() ? {} : { transform: 'none' };
  element.animate([{ opacity: 0, ...from }, { opacity: 1, ...to }], { duration: FADE_MS, easing: 'ease-out' });
}

export function exit(element: HTMLElement): void {
  element.animate([{ opacity: 1 }, { opacity: 0 }], { duration: FADE_MS, easing: 'ease-in', fill: 'forwards' });
}

/** The bar shows the time that is left. It stops with the timer. */
export function shrink(bar: HTMLElement, toast: Toast, now: number): void {
  const left = timeLeft(toast, now);
  if (left === null) return;
  const duration = toast.item.duration;
  const [running] = bar.getAnimations();
  const animation = running ?? bar.animate([{ transform: 'scaleX(1)' }, { transform: 'scaleX(0)' }], { duration, fill: 'forwards' });
  animation.currentTime = duration - left;
  if (toast.since === null) animation.pause();
  else animation.play();
}
