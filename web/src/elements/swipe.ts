import type { Position } from '../notification.ts';

/** How far a swipe must go to dismiss, in pixels. */
const DISTANCE = 45;
/** Or how fast it must be, in pixels per millisecond, after the first few pixels. */
const SPEED = 0.5;
const SPEED_FROM = 10;

/** How far the pointer moved in the direction that dismisses: right, or up for toasts in the top centre. */
export function swiped(position: Position, dx: number, dy: number): number {
  return Math.max(0, position === 'top-center' ? -dy : dx);
}

/** Whether a movement dismisses. */
export function dismisses(distance: number, milliseconds: number): boolean {
  return distance >= DISTANCE || (distance >= SPEED_FROM && distance / Math.max(1, milliseconds) >= SPEED);
}

/** Follows a finger or a pen on a toast. A mouse selects text instead, and has the ×. */
export function followSwipe(
  start: PointerEvent, toast: HTMLElement, position: Position, held: (held: boolean) => void, dismiss: () => void,
): void {
  if (start.pointerType === 'mouse' || !start.isPrimary) return;
  const end = new AbortController();
  const distance = (event: PointerEvent): number => swiped(position, event.clientX - start.clientX, event.clientY - start.clientY);
  const move = (event: PointerEvent): void => {
    if (event.pointerId !== start.pointerId) return;
    const pixels = distance(event);
    toast.style.translate = position === 'top-center' ? `0 ${String(-pixels)}px` : `${String(pixels)}px 0`;
  };
  const finish = (event: PointerEvent): void => {
    if (event.pointerId !== start.pointerId) return;
    end.abort();
    held(false);
    const far = event.type === 'pointerup' && dismisses(distance(event), event.timeStamp - start.timeStamp);
    if (far) dismiss();
    else toast.style.translate = '';
  };
  held(true);
  const root = toast.ownerDocument;
  root.addEventListener('pointermove', move, { signal: end.signal });
  root.addEventListener('pointerup', finish, { signal: end.signal });
  root.addEventListener('pointercancel', finish, { signal: end.signal });
}
