// Stand-ins for what a server has not, so that importing the elements there does nothing and fails nothing. The build puts
// them in the place of the globals.
const noDocument = { createTreeWalker: () => ({}) } as unknown as Document;

const elementBase = globalThis.HTMLElement as typeof HTMLElement | undefined;
const pageDocument = globalThis.document as Document | undefined;

const base = elementBase ?? (Object as unknown as typeof HTMLElement);
const page = pageDocument ?? noDocument;

export { base as HTMLElement, page as document };
