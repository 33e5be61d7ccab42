import { type TemplateResult } from 'lit';
import { type Route } from '../routes.ts';
import type { Workspace } from '../workspace.ts';
export interface RailView {
    readonly workspace: Workspace;
    readonly route: Route | null;
    readonly signOut: () => void;
    readonly view: (person: string) => void;
}
/** The rail at the left; a bottom bar on a phone. */
export declare function rail(view: RailView): TemplateResult;
