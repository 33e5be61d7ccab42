import { Bellwire, type BellwireOptions } from './bellwire.ts';
import { Observable } from './store/observable.ts';

const instance = new Observable<Bellwire | null>(null);

/** The instance that the elements of a page use unless they are given another. */
export const page = {
  /** The page's instance. One without a hub is made where there is none. */
  current(): Bellwire {
    const current = instance.get() ?? new Bellwire();
    instance.set(current);
    return current;
  },
  peek: instance.get,
  subscribe: instance.subscribe,
};

/** Connects the page to a person's notifications; a former connection of the page ends. */
export function connect(options: BellwireOptions): Bellwire {
  instance.get()?.close();
  const next = new Bellwire(options);
  instance.set(next);
  return next;
}

/** Ends the connection of the page, such as when the person signs out. What it showed is gone. */
export function disconnect(which: Bellwire | null = instance.get()): void {
  which?.close();
  if (instance.get() === which) instance.set(null);
}
