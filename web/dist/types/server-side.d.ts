declare const base: {
    new (): HTMLElement;
    prototype: HTMLElement;
};
declare const page: Document;
export { base as HTMLElement, page as document };
