/** The variables that a page can set, on `:root` or on an element. */
export declare const VARIABLES: readonly ["--bellwire-surface", "--bellwire-sunken", "--bellwire-text", "--bellwire-muted", "--bellwire-line", "--bellwire-control", "--bellwire-accent", "--bellwire-accent-soft", "--bellwire-focus", "--bellwire-info", "--bellwire-success", "--bellwire-warning", "--bellwire-error", "--bellwire-radius", "--bellwire-shadow", "--bellwire-font", "--bellwire-toast-width", "--bellwire-offset", "--bellwire-offset-top"];
/** The colours by the system's setting, unless the attribute `theme` says `light` or `dark`; and what all elements share. */
export declare const theme: import("lit").CSSResult;
