// The theme: the system's setting decides until the person chooses.
import { Observable } from '../store/observable.ts';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'bellwire:theme';

export const theme = new Observable<Theme>(stored());

export function chooseTheme(choice: Theme): void {
  try {
    if (choice === 'system') localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, choice);
  } catch {
    // Without storage, the choice lasts until the page is closed.
  }
  theme.set(choice);
  applyTheme();
}

/** Tells the document, whose colours are behind the console. Other tabs follow. */
export function applyTheme(): void {
  const choice = theme.get();
  if (choice === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
}

export function followTheme(): void {
  applyTheme();
  window.addEventListener('storage', ({ key }) => {
    if (key !== KEY) return;
    theme.set(stored());
    applyTheme();
  });
}

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === 'light' || value === 'dark' ? value : 'system';
  } catch {
    return 'system';
  }
}
