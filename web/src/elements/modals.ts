// While a modal dialog is open, the rest of the page is inert: a toast outside of the dialog could be seen, but neither
// pressed nor read out. So the toasts move into the dialog, and back when it closes.

/** The modal dialog that was opened last. */
export function topModal(opened: readonly HTMLDialogElement[]): HTMLDialogElement | null {
  const isModal = (dialog: HTMLDialogElement): boolean => dialog.isConnected && dialog.matches(':modal');
  return opened.findLast(isModal) ?? [...document.querySelectorAll('dialog')].findLast(isModal) ?? null;
}

/** Watches the dialogs of the page. Those inside of shadow roots are not seen. */
export class Modals {
  readonly #observer: MutationObserver;
  #opened: HTMLDialogElement[] = [];

  constructor(changed: () => void) {
    this.#observer = new MutationObserver((records) => {
      const dialogs = records.map(({ target }) => target).filter((target) => target instanceof HTMLDialogElement);
      if (dialogs.length === 0) return;
      this.#opened = [...this.#opened.filter((dialog) => !dialogs.includes(dialog)), ...new Set(dialogs)].filter(({ open }) => open);
      changed();
    });
    this.#observer.observe(document, { subtree: true, attributeFilter: ['open'] });
  }

  get top(): HTMLDialogElement | null {
    return topModal(this.#opened);
  }

  disconnect(): void {
    this.#observer.disconnect();
  }
}
