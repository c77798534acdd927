// Dates as texts.

/** Whether the day of an ISO 8601 text is in the calendar: `Date.parse` takes February 31 for March 3. */
export function isCalendarDay(text: string): boolean {
  const day = new Date(`${text.slice(0, 10)}T00:00:00Z`);
  return day.getUTCDate() === Number(text.slice(8, 10));
}
