// @ts-check
// Light or dark: as the system has it, or as the reader has chosen here.

import { signal } from "./html.js";

const KEY = "troupe-console-theme";
const themes = ["system", "light", "dark"];

export const theme = signal(localStorage.getItem(KEY) ?? "system");

export function applyTheme() {
  document.documentElement.dataset.theme = theme.value;
}

export function nextTheme() {
  theme.value = themes[(themes.indexOf(theme.value) + 1) % themes.length] ?? "system";
  localStorage.setItem(KEY, theme.value);
  applyTheme();
}
