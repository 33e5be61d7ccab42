import { type TemplateResult } from 'lit';
import type { Route } from '../routes.ts';
import type { Workspace } from '../workspace.ts';
export declare function pageOf(workspace: Workspace, route: Route): TemplateResult;
