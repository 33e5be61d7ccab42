// Times, durations and numbers as people read them.
import { when } from '../elements/when.ts';

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
const dayAndTime = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const counts = new Intl.NumberFormat('en');

/** `15:30:01.204` */
export function exactTime(time: string): string {
  const at = Date.parse(time);
  return Number.isNaN(at) ? '' : `${clock.format(at)}.${String(at % 1000).padStart(3, '0')}`;
}

/** A text of the hub with its times as people read them. */
export function withTimes(text: string): string {
  return text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, (time) => exactTime(time) || time);
}

/** `15:30:01`, or with the day where it is another than today. */
export function shortTime(time: string | null, now = Date.now()): string {
  const at = Date.parse(time ?? '');
  if (Number.isNaN(at)) return '';
  return new Date(at).toDateString() === new Date(now).toDateString() ? clock.format(at) : dayAndTime.format(at);
}

/** `+300 ms`, `+1.4 s`, `+2 min`: the time from one moment to another. */
export function later(from: string, at: string): string {
  const passed = Date.parse(at) - Date.parse(from);
  return Number.isNaN(passed) ? '' : `+${length(Math.max(0, passed))}`;
}

export function length(milliseconds: number): string {
  if (milliseconds < 1000) return `${String(Math.round(milliseconds))} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(milliseconds < 10_000 ? 1 : 0).replace('.0', '')} s`;
  if (milliseconds < 3_600_000) return `${String(Math.round(milliseconds / 60_000))} min`;
  return milliseconds < 172_800_000 ? `${String(Math.round(milliseconds / 3_600_000))} h` : `${String(Math.round(milliseconds / 86_400_000))} d`;
}

/** How long until a time: `in 6 h`; `now` where it has come. */
export function until(time: string, now = Date.now()): string {
  const rest = Date.parse(time) - now;
  return rest <= 0 ? 'now' : `in ${length(rest)}`;
}

export function ago(time: string, now = Date.now()): string {
  return when(time, now, 'en');
}

export function count(value: number): string {
  return counts.format(value);
}

/** `1 event`, `2 events`. */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}
