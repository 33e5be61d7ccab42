import { type TemplateResult } from 'lit';
/** The list of keys, opened by «?». */
export declare function keysHelp(): TemplateResult;
