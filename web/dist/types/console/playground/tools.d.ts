import type { HubHttp } from '../../client/http.ts';
export interface Tool {
    readonly name: string;
    readonly description: string;
    readonly schema: unknown;
}
export declare function listTools(http: HubHttp): Promise<readonly Tool[]>;
