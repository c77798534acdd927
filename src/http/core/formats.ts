// The formats that schemas may name. Each is checked in time linear to the text's length.

import { isCalendarDay } from "../../lib/dates.ts";

const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/;

export const formats: Readonly<Record<string, (text: string) => boolean>> = {
  "date-time": (text) =>
    text.length <= 40 && DATE_TIME.test(text) && !Number.isNaN(Date.parse(text)) && isCalendarDay(text),
  uri: (text) => URL.canParse(text),
};
