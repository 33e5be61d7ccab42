/** The element that has the focus, also inside of shadow roots. */
export function focusedElement(): HTMLElement | null {
  let active = document.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
  return active instanceof HTMLElement && active !== document.body ? active : null;
}

/** Whether a key press is the hotkey, such as `F8` or `Alt+T`. */
export function isHotkey(event: KeyboardEvent, hotkey: string): boolean {
  if (hotkey === '') return false;
  const parts = hotkey.split('+').map((part) => part.trim().toLowerCase());
  const key = parts.pop();
  const wanted = (name: string): boolean => parts.includes(name);
  // With Alt, `key` may be a special character of the layout; `code` is the key itself.
  const pressed = event.key.toLowerCase() === key || event.code.toLowerCase() === `key${key ?? ''}`;
  return pressed && event.altKey === wanted('alt') && event.ctrlKey === wanted('ctrl') && event.shiftKey === wanted('shift')
    && event.metaKey === wanted('meta');
}
