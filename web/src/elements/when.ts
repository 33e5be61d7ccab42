const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['day', 86_400_000], ['hour', 3_600_000], ['minute', 60_000],
];

/** How long ago a time is: `2 min ago`, `yesterday`; a date where it is more than a week. */
export function when(time: string, now: number, language: string | undefined): string {
  const at = Date.parse(time);
  if (Number.isNaN(at)) return '';
  const past = now - at;
  if (past > 7 * 86_400_000) return new Intl.DateTimeFormat(language, { dateStyle: 'medium' }).format(at);
  const format = new Intl.RelativeTimeFormat(language, { numeric: 'auto', style: 'short' });
  const [unit, size] = UNITS.find(([, length]) => past >= length) ?? ['second', 1000];
  // Below a minute: `now`.
  return format.format(unit === 'second' ? 0 : -Math.floor(past / size), unit);
}

/** A time of today, or of another day with its date. */
export function clockTime(time: string, now: number, language: string | undefined): string {
  const at = Date.parse(time);
  if (Number.isNaN(at)) return '';
  const today = new Date(at).toDateString() === new Date(now).toDateString();
  return new Intl.DateTimeFormat(language, today ? { timeStyle: 'short' } : { dateStyle: 'medium', timeStyle: 'short' }).format(at);
}
