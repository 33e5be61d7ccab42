import { LitElement, type TemplateResult, html, nothing } from 'lit';
import { explain } from '../api.ts';
import type { Workspace } from '../workspace.ts';

interface Person {
  readonly id: string;
}

/** How many people are offered; typing narrows them down. */
const OFFERED = 20;
/** How long a person may pause while typing, in milliseconds. */
const PAUSE_MS = 200;

/** «Viewing ada»: an operator chooses whose data is shown. */
export class PersonSwitchElement extends LitElement {
  static override properties = { workspace: { attribute: false }, place: {}, people: { state: true }, problem: { state: true } };

  declare workspace: Workspace;
  declare place: string;
  declare people: readonly Person[];
  declare problem: string | null;

  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    super();
    this.place = '';
    this.people = [];
    this.problem = null;
  }

  protected override createRenderRoot(): this {
    return this;
  }

  protected override render(): TemplateResult {
    const { person, isReadOnly } = this.workspace;
    const list = `people-${this.place}`;
    const id = `viewing-${this.place}`;
    return html`<form class="viewing" @submit=${this.#submit}>
      <label for=${id}>Viewing${isReadOnly ? ' (read only)' : ''}</label>
      <input id=${id} name="person" list=${list} .value=${person} autocomplete="off" spellcheck="false"
        @focus=${() => this.#search('')} @input=${this.#typed} @change=${this.#changed}>
      <datalist id=${list}>${this.people.map(({ id }) => html`<option value=${id}></option>`)}</datalist>
      ${this.problem === null ? nothing : html`<span role="alert">${this.problem}</span>`}
    </form>`;
  }

  #typed(event: Event): void {
    clearTimeout(this.#timer);
    const { value } = event.target as HTMLInputElement;
    this.#timer = setTimeout(() => { void this.#search(value); }, PAUSE_MS);
  }

  #changed(event: Event): void {
    this.#choose((event.target as HTMLInputElement).value.trim());
  }

  #submit(event: SubmitEvent): void {
    event.preventDefault();
    const field = (event.target as HTMLFormElement).elements.namedItem('person');
    if (field instanceof HTMLInputElement) this.#choose(field.value.trim());
  }

  #choose(person: string): void {
    if (person !== '') this.dispatchEvent(new CustomEvent('view', { detail: person }));
  }

  async #search(prefix: string): Promise<void> {
    try {
      const { items } = await this.workspace.api.list<Person>('/v1/users', { prefix, limit: OFFERED });
      [this.people, this.problem] = [items, null];
    } catch (error) {
      [this.people, this.problem] = [[], explain('The list of people could not be loaded', error)];
    }
  }
}
