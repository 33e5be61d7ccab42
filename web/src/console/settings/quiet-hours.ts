// Quiet hours as pure functions: minutes since midnight in the person's time zone.

export interface QuietHours {
  readonly start: string;
  readonly end: string;
  readonly timezone: string;
}

export const DAY = 1440;

/** `22:30` as minutes since midnight. */
export function minutesOf(time: string): number {
  const [hours = '0', minutes = '0'] = time.split(':');
  return (Number(hours) * 60 + Number(minutes)) % DAY;
}

export function timeOf(minutes: number): string {
  const within = ((Math.round(minutes) % DAY) + DAY) % DAY;
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${two(Math.floor(within / 60))}:${two(within % 60)}`;
}

/** The minutes since midnight in a time zone; in the browser's where it does not know the zone. */
export function minuteIn(timezone: string, now: number): number {
  const options = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat('en-GB', { ...options, timeZone: timezone });
  } catch {
    format = new Intl.DateTimeFormat('en-GB', options);
  }
  return minutesOf(format.format(now));
}

/** How many minutes after `start` the time is, around midnight. */
export function after(start: number, minute: number): number {
  return (minute - start + DAY) % DAY;
}

export function isQuiet(quiet: QuietHours, now: number): boolean {
  const [start, end] = [minutesOf(quiet.start), minutesOf(quiet.end)];
  return after(start, minuteIn(quiet.timezone, now)) < after(start, end);
}

/** What the hours mean now: `Quiet until 07:00, in 6 h 20 min`. */
export function describe(quiet: QuietHours, now: number): string {
  const minute = minuteIn(quiet.timezone, now);
  if (isQuiet(quiet, now)) return `Quiet now. Mail resumes at ${quiet.end}, in ${duration(after(minute, minutesOf(quiet.end)))}.`;
  return `Quiet from ${quiet.start}, in ${duration(after(minute, minutesOf(quiet.start)))}, until ${quiet.end}.`;
}

export function duration(minutes: number): string {
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60];
  return [hours > 0 ? `${String(hours)} h` : '', rest > 0 || hours === 0 ? `${String(rest)} min` : ''].filter((part) => part !== '').join(' ');
}

/** The parts of a day that are quiet, as pieces between 0 and 1440: two where it goes over midnight. */
export function pieces(start: number, end: number): readonly (readonly [number, number])[] {
  if (start === end) return [];
  return start < end ? [[start, end]] : [[start, DAY], [0, end]];
}
